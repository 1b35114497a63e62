-- People have roles: in the account (owner, member) and in each project (viewer, member, owner). A project says which role
-- the account's other people have in it, and which role may merge. An invitation lets a new person in once.
--
-- Everybody who exists before this migration becomes an owner, so that nothing changes for them. A person is never deleted, because
-- rows name her: she is deactivated. An older version of the service cannot run beside this one.
ALTER TABLE users
  ADD COLUMN role text NOT NULL DEFAULT 'owner' CONSTRAINT users_role_known CHECK (role IN ('member', 'owner')),
  ADD COLUMN deactivated_at timestamptz;
ALTER TABLE users ALTER COLUMN role DROP DEFAULT;

ALTER TABLE projects
  ADD COLUMN default_role text DEFAULT 'member'
    CONSTRAINT projects_default_role_known CHECK (default_role IN ('viewer', 'member')),
  ADD COLUMN merge_role text NOT NULL DEFAULT 'member'
    CONSTRAINT projects_merge_role_known CHECK (merge_role IN ('member', 'owner'));
ALTER TABLE projects ALTER COLUMN default_role DROP DEFAULT, ALTER COLUMN merge_role DROP DEFAULT;

CREATE TABLE project_members (
  project_id uuid NOT NULL,
  user_id uuid NOT NULL,
  role text NOT NULL,
  granted_at timestamptz NOT NULL,
  CONSTRAINT project_members_pkey PRIMARY KEY (project_id, user_id),
  CONSTRAINT project_members_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT project_members_user_fkey FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT project_members_role_known CHECK (role IN ('viewer', 'member', 'owner'))
);
CREATE INDEX project_members_user_idx ON project_members (user_id);

-- `projects` has the grants: [{"projectId": …, "role": …}].
CREATE TABLE invitations (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  hash text NOT NULL,
  name text NOT NULL,
  role text NOT NULL,
  projects jsonb NOT NULL,
  created_by uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  accepted_at timestamptz,
  accepted_by uuid,
  revoked_at timestamptz,
  CONSTRAINT invitations_pkey PRIMARY KEY (id),
  CONSTRAINT invitations_hash_key UNIQUE (hash),
  CONSTRAINT invitations_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT invitations_created_by_fkey FOREIGN KEY (created_by) REFERENCES users (id),
  CONSTRAINT invitations_accepted_by_fkey FOREIGN KEY (accepted_by) REFERENCES users (id),
  CONSTRAINT invitations_accepted_whole CHECK ((accepted_at IS NULL) = (accepted_by IS NULL)),
  CONSTRAINT invitations_role_known CHECK (role IN ('member', 'owner'))
);
CREATE INDEX invitations_account_idx ON invitations (account_id, created_at DESC, id DESC);

-- The sessions of a deactivated person are saved and stopped.
ALTER TABLE project_sessions
  DROP CONSTRAINT project_sessions_stop_reason_known,
  ADD CONSTRAINT project_sessions_stop_reason_known
    CHECK (stop_reason IN ('requested', 'idle', 'deleted', 'user_deactivated'));
