-- People put sessions away (archive), and lists say which news of a session a person has not seen. What happened before this migration counts
-- as seen, and no session is archived.

ALTER TABLE project_sessions ADD COLUMN archived_at timestamptz;
ALTER TABLE project_sessions ADD COLUMN seen_before timestamptz DEFAULT now();
ALTER TABLE project_sessions ALTER COLUMN seen_before DROP DEFAULT;

CREATE TABLE session_reads (
  session_id uuid NOT NULL CONSTRAINT session_reads_session_fkey REFERENCES project_sessions (id) ON DELETE CASCADE,
  user_id uuid NOT NULL CONSTRAINT session_reads_user_fkey REFERENCES users (id),
  seen_at timestamptz NOT NULL,
  CONSTRAINT session_reads_pkey PRIMARY KEY (session_id, user_id)
);
