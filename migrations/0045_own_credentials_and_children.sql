-- What the agents' gateway needs: a person's own credential for a connector (manifest, credential = "user"), and the session whose
-- agent started a session.
--
-- A credential or a grant without a person is the project's. One with a person is hers: it is sealed with her id, only her
-- sessions use it, and it opens for no other person. The rows of a person are removed when she is deactivated. A sign-in that is
-- under way says for whom its tokens are to be kept, so that a change of the manifest meanwhile cannot make hers the project's.
-- For an operator: existing rows are the project's, and do not change. An older version of the service cannot run beside this one.

ALTER TABLE connector_credentials
  ADD COLUMN person_id uuid,
  DROP CONSTRAINT connector_credentials_pkey,
  ADD CONSTRAINT connector_credentials_key UNIQUE NULLS NOT DISTINCT (project_id, slug, person_id),
  ADD CONSTRAINT connector_credentials_person_fkey FOREIGN KEY (person_id) REFERENCES users (id);
CREATE INDEX connector_credentials_person_idx ON connector_credentials (person_id) WHERE person_id IS NOT NULL;

ALTER TABLE connector_grants
  ADD COLUMN person_id uuid,
  DROP CONSTRAINT connector_grants_pkey,
  ADD CONSTRAINT connector_grants_key UNIQUE NULLS NOT DISTINCT (project_id, slug, person_id),
  ADD CONSTRAINT connector_grants_person_fkey FOREIGN KEY (person_id) REFERENCES users (id);
CREATE INDEX connector_grants_person_idx ON connector_grants (person_id) WHERE person_id IS NOT NULL;

ALTER TABLE connector_flows
  ADD COLUMN is_own boolean NOT NULL DEFAULT false;
ALTER TABLE connector_flows ALTER COLUMN is_own DROP DEFAULT;

ALTER TABLE project_sessions
  -- The session of the same project whose agent started this one. Null: a person or a trigger did.
  ADD COLUMN parent_session_id uuid,
  ADD CONSTRAINT project_sessions_parent_fkey FOREIGN KEY (parent_session_id) REFERENCES project_sessions (id);
CREATE INDEX project_sessions_parent_idx ON project_sessions (parent_session_id, created_at DESC, id DESC)
  WHERE parent_session_id IS NOT NULL;
