-- Sessions (spec 2.1, 3.1) and their sandboxes (spec 2.2, 3.2): one sandbox row a boot.
--
-- The enum has the specification's seven values; queued, branching and completed are never written.
-- state_context is the part of the state machine's memory that is no column of its own. version fences writers: a save
-- changes the row only at the version its writer read. A sandbox in one of its last three states is final.

CREATE TYPE project_session_status AS ENUM (
  'queued', 'branching', 'provisioning', 'running', 'stopped', 'failed', 'completed'
);
CREATE TYPE session_sandbox_status AS ENUM ('provisioning', 'active', 'stopped', 'error', 'archived');

CREATE TABLE project_sessions (
  -- Also the name of the session branch.
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  account_id uuid NOT NULL,
  status project_session_status NOT NULL,
  version integer NOT NULL DEFAULT 1,
  state_context jsonb NOT NULL,
  base_ref text NOT NULL,
  base_commit text,
  name text,
  agent_name text NOT NULL,
  agent_model text,
  initial_prompt text,
  metadata jsonb NOT NULL,
  trigger_slug text,
  fire_id uuid,
  created_by uuid NOT NULL,
  -- What the token in its sandbox may do (api.md 1 "Origin").
  origin text NOT NULL,
  failure jsonb,
  failed_at timestamptz,
  stop_reason text,
  -- When it last entered provisioning, and until when it must be running.
  provisioned_at timestamptz NOT NULL,
  boot_deadline_at timestamptz NOT NULL,
  bootstrap_accepted_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  running_at timestamptz,
  stopped_at timestamptz,
  deleted_at timestamptz,
  CONSTRAINT project_sessions_pkey PRIMARY KEY (id),
  CONSTRAINT project_sessions_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT project_sessions_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT project_sessions_created_by_fkey FOREIGN KEY (created_by) REFERENCES users (id),
  CONSTRAINT project_sessions_status_written CHECK (status NOT IN ('queued', 'branching', 'completed')),
  CONSTRAINT project_sessions_origin_known CHECK (origin IN ('session', 'trigger')),
  CONSTRAINT project_sessions_stop_reason_known CHECK (stop_reason IN ('requested', 'idle', 'deleted')),
  CONSTRAINT project_sessions_failure_dated CHECK ((failure IS NULL) = (failed_at IS NULL)),
  CONSTRAINT project_sessions_failed_has_reason CHECK (status <> 'failed' OR failure IS NOT NULL)
);

CREATE INDEX project_sessions_list_idx ON project_sessions (project_id, created_at DESC, id DESC)
  WHERE deleted_at IS NULL;
CREATE INDEX project_sessions_live_idx ON project_sessions (account_id) WHERE status IN ('provisioning', 'running');
-- A fire starts one session (threats.md I2).
CREATE UNIQUE INDEX project_sessions_fire_key ON project_sessions (fire_id);

CREATE TABLE session_sandboxes (
  id uuid NOT NULL,
  session_id uuid NOT NULL,
  provider text NOT NULL,
  node_id text NOT NULL,
  status session_sandbox_status NOT NULL,
  version integer NOT NULL DEFAULT 1,
  state_context jsonb NOT NULL,
  failure jsonb,
  boot_deadline_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL,
  active_at timestamptz,
  ended_at timestamptz,
  CONSTRAINT session_sandboxes_pkey PRIMARY KEY (id),
  CONSTRAINT session_sandboxes_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT session_sandboxes_error_has_reason CHECK (status <> 'error' OR failure IS NOT NULL),
  CONSTRAINT session_sandboxes_end_dated CHECK ((status IN ('provisioning', 'active')) = (ended_at IS NULL))
);

CREATE INDEX session_sandboxes_session_idx ON session_sandboxes (session_id, created_at DESC, id DESC);
-- At most one live sandbox a session (api.md 3, threats.md I10).
CREATE UNIQUE INDEX session_sandboxes_live_key ON session_sandboxes (session_id)
  WHERE status IN ('provisioning', 'active');
