-- What opens the repository of a project that is kept at another server (api.md 2), sealed as project secrets are.
--
-- envelope is AES-256-GCM bound to the project: a row copied to another project does not open. Projects without a row
-- are hosted here, or their server asks for nothing. Operators: as for secrets, a backup opens with the master key alone.

CREATE TABLE project_credentials (
  project_id uuid NOT NULL,
  envelope bytea NOT NULL,
  CONSTRAINT project_credentials_pkey PRIMARY KEY (project_id),
  CONSTRAINT project_credentials_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);
