-- Projects, what was last read of their manifests, and the only runtime state of their triggers (spec 2.3).
--
-- The manifest in the repository is the source of truth for triggers; text and commit_sha are the last reading that
-- parsed, error is what was wrong with the newest one, so that its triggers go on firing (api.md 4).

CREATE TABLE projects (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  name text NOT NULL,
  status text NOT NULL DEFAULT 'active',
  -- Discriminated by `kind`; never a credential.
  repository jsonb NOT NULL,
  default_branch text NOT NULL,
  triggers_paused boolean NOT NULL DEFAULT false,
  -- Changes with every change of the project's secrets (PLATFORM_PROJECT_SECRETS_REVISION).
  secrets_revision integer NOT NULL DEFAULT 0,
  -- The highest change request number given out.
  change_requests integer NOT NULL DEFAULT 0,
  -- accounts.drained_turns when a waiting fire of this project was last started; the lowest is next.
  drained_turn bigint NOT NULL DEFAULT 0,
  -- Sessions that a cron or webhook fire spawns act for this user.
  created_by uuid NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT projects_pkey PRIMARY KEY (id),
  CONSTRAINT projects_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT projects_created_by_fkey FOREIGN KEY (created_by) REFERENCES users (id),
  CONSTRAINT projects_status_known CHECK (status IN ('active', 'archived'))
);

CREATE INDEX projects_account_idx ON projects (account_id, created_at DESC, id DESC);

CREATE TABLE project_manifests (
  project_id uuid NOT NULL,
  -- The newest commit that was read, parsed or not.
  read_commit text,
  synced_at timestamptz NOT NULL,
  error text,
  -- The last commit whose manifest parsed, and its text.
  commit_sha text,
  text text,
  CONSTRAINT project_manifests_pkey PRIMARY KEY (project_id),
  CONSTRAINT project_manifests_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT project_manifests_good_reading_whole CHECK ((commit_sha IS NULL) = (text IS NULL))
);

CREATE TABLE project_trigger_runtime (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  last_fired_at timestamptz NOT NULL,
  CONSTRAINT project_trigger_runtime_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT project_trigger_runtime_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);
