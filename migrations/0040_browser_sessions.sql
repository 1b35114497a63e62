-- Browsers that are signed in are rows: every node knows them, a restart keeps them, and a person can end each of hers. A browser's
-- session is a token of the kind 'browser'. It ends with the token that opened it, and its expiry moves while it is used.
-- One-time links are rows too, so that any node opens them. An identity is what a sign-in provider calls a person.
--
-- Operators: every browser must sign in again after this upgrade, and one-time links from before it do not work any more.
ALTER TABLE tokens
  ADD COLUMN opened_by uuid,
  ADD COLUMN address text,
  ADD COLUMN user_agent text,
  ADD CONSTRAINT tokens_opened_by_fkey FOREIGN KEY (opened_by) REFERENCES tokens (id),
  DROP CONSTRAINT tokens_kind_known,
  ADD CONSTRAINT tokens_kind_known CHECK (kind IN ('access', 'sandbox', 'browser')),
  ADD CONSTRAINT tokens_browser_whole CHECK (
    CASE WHEN kind = 'browser' THEN origin = 'user' AND sandbox_id IS NULL AND expires_at IS NOT NULL
    ELSE opened_by IS NULL AND address IS NULL AND user_agent IS NULL END
  );
CREATE INDEX tokens_browser_idx ON tokens (user_id, created_at DESC, id DESC) WHERE kind = 'browser';
-- The foreign key looks for the browsers of a token that is deleted.
CREATE INDEX tokens_opened_by_idx ON tokens (opened_by) WHERE opened_by IS NOT NULL;

CREATE TABLE sign_in_links (
  hash text NOT NULL,
  token_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT sign_in_links_pkey PRIMARY KEY (hash),
  CONSTRAINT sign_in_links_token_fkey FOREIGN KEY (token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
CREATE INDEX sign_in_links_token_idx ON sign_in_links (token_id, created_at DESC, hash);

-- Never an e-mail address: another person can have it later.
CREATE TABLE identities (
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT identities_pkey PRIMARY KEY (issuer, subject),
  CONSTRAINT identities_user_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE INDEX identities_user_idx ON identities (user_id);
