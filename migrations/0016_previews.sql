-- Preview links and the cookies that take their place: a browser's way to a port inside a sandbox (api.md 3).
--
-- A row holds the hash of one secret: the link's until it is opened, then the cookie's, so that no link can be opened twice.
-- It ends with its instant, with the token that made it, and with its sandbox; who asks joins them. What it is of takes it
-- along when it goes.

CREATE TABLE previews (
  hash text NOT NULL,
  token_id uuid NOT NULL,
  session_id uuid NOT NULL,
  sandbox_id uuid NOT NULL,
  port integer NOT NULL,
  created_at timestamptz NOT NULL,
  -- The link's end, then the cookie's.
  expires_at timestamptz NOT NULL,
  opened_at timestamptz,
  CONSTRAINT previews_pkey PRIMARY KEY (hash),
  CONSTRAINT previews_token_fkey FOREIGN KEY (token_id) REFERENCES tokens (id) ON DELETE CASCADE,
  CONSTRAINT previews_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id) ON DELETE CASCADE,
  CONSTRAINT previews_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes (id) ON DELETE CASCADE,
  CONSTRAINT previews_port_known CHECK (port BETWEEN 1 AND 65535)
);

CREATE INDEX previews_session_idx ON previews (session_id, created_at DESC, hash);
CREATE INDEX previews_expiry_idx ON previews (expires_at);
