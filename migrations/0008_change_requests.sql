-- Change requests (api.md 6): the only way of a session's work to the default branch (spec 1).
-- Numbers run from 1 in each project; projects.change_requests gives them out.

CREATE TABLE change_requests (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  number integer NOT NULL,
  session_id uuid,
  head_ref text NOT NULL,
  base_ref text NOT NULL,
  title text NOT NULL,
  description text NOT NULL,
  status text NOT NULL,
  created_by uuid,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT change_requests_pkey PRIMARY KEY (id),
  CONSTRAINT change_requests_number_key UNIQUE (project_id, number),
  CONSTRAINT change_requests_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT change_requests_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT change_requests_created_by_fkey FOREIGN KEY (created_by) REFERENCES users (id),
  CONSTRAINT change_requests_status_known CHECK (status IN ('open', 'merged', 'closed'))
);

CREATE UNIQUE INDEX change_requests_open_head_key ON change_requests (project_id, head_ref) WHERE status = 'open';
CREATE INDEX change_requests_list_idx ON change_requests (project_id, created_at DESC, id DESC);
