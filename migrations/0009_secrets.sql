-- Project secrets, sealed (api.md 5), and settings of this installation.
--
-- envelope is AES-256-GCM bound to project, name and version: a row copied to another place does not open. A removed
-- secret keeps its row without an envelope, so that a version never comes back under the same name.
-- settings holds the check value of the master key: a wrong key is refused at the start instead of writing what nobody
-- can read. Operators: a backup of this database opens only with the master key, which is not in it.

CREATE TABLE project_secrets (
  project_id uuid NOT NULL,
  name text NOT NULL,
  version integer NOT NULL,
  envelope bytea,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  updated_by uuid,
  CONSTRAINT project_secrets_pkey PRIMARY KEY (project_id, name),
  CONSTRAINT project_secrets_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT project_secrets_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES users (id),
  CONSTRAINT project_secrets_version_positive CHECK (version > 0)
);

CREATE TABLE settings (
  key text NOT NULL,
  value text NOT NULL,
  CONSTRAINT settings_pkey PRIMARY KEY (key)
);
