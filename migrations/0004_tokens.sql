-- Tokens of people, the two tokens of each sandbox, and the passwords minted for its git.
--
-- Only SHA-256 hashes are kept. A sandbox's tokens and passwords are never revoked one by one: every look-up joins the
-- session and the sandbox, and what has ended opens nothing (threats.md T03, G10).
-- Operators: to shut out a leaked token at once, set its revoked_at.

CREATE TABLE tokens (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  user_id uuid NOT NULL,
  -- Bound to this project; null: the whole account.
  project_id uuid,
  -- The sandbox that carries it; null: a token someone made.
  session_id uuid,
  sandbox_id uuid,
  -- 'sandbox': a PLATFORM_TOKEN, good for the clone credential alone (spec 5.2).
  kind text NOT NULL,
  origin text NOT NULL,
  name text NOT NULL,
  hash text NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  CONSTRAINT tokens_pkey PRIMARY KEY (id),
  CONSTRAINT tokens_hash_key UNIQUE (hash),
  CONSTRAINT tokens_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT tokens_user_fkey FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT tokens_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT tokens_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT tokens_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes (id),
  CONSTRAINT tokens_kind_known CHECK (kind IN ('access', 'sandbox')),
  CONSTRAINT tokens_origin_known CHECK (origin IN ('user', 'session', 'trigger')),
  CONSTRAINT tokens_sandbox_whole CHECK ((session_id IS NULL) = (sandbox_id IS NULL)),
  CONSTRAINT tokens_sandbox_bound CHECK (sandbox_id IS NULL OR project_id IS NOT NULL)
);

CREATE INDEX tokens_account_idx ON tokens (account_id, created_at DESC, id DESC)
  WHERE sandbox_id IS NULL AND revoked_at IS NULL;

CREATE TABLE clone_credentials (
  hash text NOT NULL,
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  sandbox_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT clone_credentials_pkey PRIMARY KEY (hash),
  CONSTRAINT clone_credentials_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT clone_credentials_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT clone_credentials_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes (id)
);

CREATE INDEX clone_credentials_sandbox_idx ON clone_credentials (sandbox_id, expires_at);
