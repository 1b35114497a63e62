-- A project's events are sent to receivers outside: its own systems, Slack, Discord. Each receiver is a row with its place in the
-- project's events, and each event that concerns it becomes a row that is sent until it is accepted.
--
-- For an operator: nothing is sent until someone adds a receiver. Events that an enabled receiver has not read yet are kept
-- longer than 24 hours. A backup has receivers and deliveries, but no events: after a restore a receiver continues with the events from then on.

CREATE TABLE outbound_webhooks (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  format text NOT NULL,
  -- As people see it. The whole address is in the envelope.
  shown_url text NOT NULL,
  events text[] NOT NULL,
  -- Address and signing secrets, sealed. The version counts the writes of it.
  envelope bytea NOT NULL,
  sealed_version integer NOT NULL,
  previous_secret_until timestamptz,
  status text NOT NULL,
  disabled_reason text,
  -- Since when each request failed, and since when people are warned of it.
  failing_since timestamptz,
  warned_at timestamptz,
  -- Its place in the project's events. On another server it begins at the end.
  cursor_tx xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
  cursor_row bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT outbound_webhooks_pkey PRIMARY KEY (id),
  CONSTRAINT outbound_webhooks_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT outbound_webhooks_format_known CHECK (format IN ('standard', 'slack', 'discord')),
  CONSTRAINT outbound_webhooks_status_known CHECK (status IN ('enabled', 'disabled')),
  CONSTRAINT outbound_webhooks_reason_known CHECK (
    disabled_reason IN ('requested', 'gone', 'failing', 'backlog')
  ),
  CONSTRAINT outbound_webhooks_disabled_reasoned CHECK ((status = 'disabled') = (disabled_reason IS NOT NULL))
);

CREATE INDEX outbound_webhooks_project_idx ON outbound_webhooks (project_id, created_at DESC, id DESC);

CREATE TABLE outbound_deliveries (
  id uuid NOT NULL,
  outbound_webhook_id uuid NOT NULL,
  -- The header webhook-id.
  message_id text NOT NULL,
  type text NOT NULL,
  -- The message as JSON. The request's body is made from it, the same each time.
  message text NOT NULL,
  status text NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  -- The next try. Null: there is none.
  due_at timestamptz,
  -- A node sends it until then at most. The number of the claim tells its result from a later node's.
  leased_until timestamptz,
  claim integer NOT NULL DEFAULT 0,
  tried_at timestamptz,
  took_ms integer,
  answer_status integer,
  answer text,
  error text,
  created_at timestamptz NOT NULL,
  ended_at timestamptz,
  CONSTRAINT outbound_deliveries_pkey PRIMARY KEY (id),
  CONSTRAINT outbound_deliveries_webhook_fkey FOREIGN KEY (outbound_webhook_id)
    REFERENCES outbound_webhooks (id) ON DELETE CASCADE,
  CONSTRAINT outbound_deliveries_message_key UNIQUE (outbound_webhook_id, message_id),
  CONSTRAINT outbound_deliveries_status_known CHECK (status IN ('pending', 'delivered', 'failed', 'cancelled')),
  CONSTRAINT outbound_deliveries_pending_due CHECK ((status = 'pending') = (due_at IS NOT NULL)),
  CONSTRAINT outbound_deliveries_end_dated CHECK ((status = 'pending') = (ended_at IS NULL))
);

CREATE INDEX outbound_deliveries_list_idx ON outbound_deliveries (outbound_webhook_id, created_at DESC, id DESC);
CREATE INDEX outbound_deliveries_due_idx ON outbound_deliveries (outbound_webhook_id, due_at) WHERE status = 'pending';
CREATE INDEX outbound_deliveries_ended_idx ON outbound_deliveries (ended_at) WHERE ended_at IS NOT NULL;
