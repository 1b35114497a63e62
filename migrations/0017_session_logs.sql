-- What the sandboxes of a session wrote, kept after they are gone (api.md 3): one row a boot, the newest 1 MiB of a session
-- over all its boots. Written before a sandbox is destroyed, removed with the session.

CREATE TABLE session_logs (
  sandbox_id uuid NOT NULL,
  session_id uuid NOT NULL,
  -- UTF-8, as the sandbox wrote it: whole lines.
  text bytea NOT NULL,
  kept_at timestamptz NOT NULL,
  CONSTRAINT session_logs_pkey PRIMARY KEY (sandbox_id),
  CONSTRAINT session_logs_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes (id),
  CONSTRAINT session_logs_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT session_logs_bounded CHECK (octet_length(text) <= 1048576)
);

CREATE INDEX session_logs_session_idx ON session_logs (session_id);
