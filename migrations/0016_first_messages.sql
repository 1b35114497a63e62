-- A session may begin with a message that has files, also if it waits for a free session. The files are uploaded before the session exists.
-- Nothing changes for existing sessions.

ALTER TABLE project_sessions ADD COLUMN first_message jsonb;

CREATE TABLE uploads (
  id uuid CONSTRAINT uploads_pkey PRIMARY KEY,
  project_id uuid NOT NULL CONSTRAINT uploads_project_fkey REFERENCES projects (id) ON DELETE CASCADE,
  created_by uuid NOT NULL CONSTRAINT uploads_created_by_fkey REFERENCES users (id),
  name text NOT NULL,
  media_type text NOT NULL,
  sha256 text NOT NULL,
  content bytea NOT NULL CONSTRAINT uploads_bounded CHECK (octet_length(content) <= 10485760),
  fire_id uuid,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX uploads_project_idx ON uploads (project_id, created_by);
CREATE INDEX uploads_expires_idx ON uploads (expires_at);
CREATE INDEX uploads_fire_idx ON uploads (fire_id) WHERE fire_id IS NOT NULL;
