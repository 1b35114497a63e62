-- People are told of their own sessions by mail, or in their own chat. A receiver belongs to a project or to a person; her mail goes to the
-- verified address of her last sign-in, which is kept from now on. All people's receivers share one place in the events, so a round reads
-- each event once, however many people there are. Nothing changes for existing rows: nobody is told anything until she asks for it, and an
-- address is known after the next sign-in.

ALTER TABLE identities ADD COLUMN email text;

ALTER TABLE outbound_webhooks ALTER COLUMN project_id DROP NOT NULL;
ALTER TABLE outbound_webhooks ALTER COLUMN shown_url DROP NOT NULL;
ALTER TABLE outbound_webhooks ALTER COLUMN envelope DROP NOT NULL;
ALTER TABLE outbound_webhooks ADD COLUMN user_id uuid;
ALTER TABLE outbound_webhooks ADD CONSTRAINT outbound_webhooks_user_fkey FOREIGN KEY (user_id) REFERENCES users (id);
ALTER TABLE outbound_webhooks ADD CONSTRAINT outbound_webhooks_owned CHECK ((project_id IS NULL) <> (user_id IS NULL));
ALTER TABLE outbound_webhooks DROP CONSTRAINT outbound_webhooks_format_known;
ALTER TABLE outbound_webhooks ADD CONSTRAINT outbound_webhooks_format_known CHECK (format IN ('standard', 'slack', 'discord', 'mail'));
-- Mail goes to whatever address its person has then. Everything else has an address.
ALTER TABLE outbound_webhooks ADD CONSTRAINT outbound_webhooks_addressed
  CHECK ((format = 'mail') = (envelope IS NULL) AND (format = 'mail') = (shown_url IS NULL));
-- A person has one receiver for mail, and one for her chat.
CREATE UNIQUE INDEX outbound_webhooks_user_key ON outbound_webhooks (user_id, (format = 'mail')) WHERE user_id IS NOT NULL;

-- The place of people's receivers in the events of all projects: one row, or none before the first notice. A backup leaves it out.
CREATE TABLE own_notices_place (
  is_only boolean NOT NULL DEFAULT true,
  tx xid8 NOT NULL,
  id bigint NOT NULL,
  CONSTRAINT own_notices_place_pkey PRIMARY KEY (is_only),
  CONSTRAINT own_notices_place_single CHECK (is_only)
);
CREATE INDEX events_news_order_idx ON events (tx, id) WHERE news IS NOT NULL;
