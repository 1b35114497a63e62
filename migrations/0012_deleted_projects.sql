-- A project can be deleted. For a week it is archived and can be restored; then its rows and its files go. The names of an
-- account's projects differ, by letters of either case. Where two had the same name, the later ones get a number behind it.

ALTER TABLE projects
  ADD COLUMN deletes_at timestamptz,
  -- What it becomes when it is restored.
  ADD COLUMN former_status text,
  -- The name as it is compared (domain/project/name.ts).
  ADD COLUMN name_key text,
  DROP CONSTRAINT projects_status_known,
  ADD CONSTRAINT projects_status_known CHECK (status IN ('active', 'archived', 'deleted')),
  ADD CONSTRAINT projects_former_status_known CHECK (former_status IN ('active', 'archived')),
  ADD CONSTRAINT projects_deletion_whole
    CHECK (num_nonnulls(deletes_at, former_status) = CASE WHEN status = 'deleted' THEN 2 ELSE 0 END);

DO $$
DECLARE
  project record;
  new_name text;
  counter integer;
BEGIN
  FOR project IN SELECT id, account_id, name FROM projects ORDER BY created_at, id LOOP
    new_name := project.name;
    counter := 1;
    WHILE EXISTS (
      SELECT FROM projects
      WHERE account_id = project.account_id AND name_key = lower(btrim(normalize(new_name, NFKC)))
    ) LOOP
      counter := counter + 1;
      new_name := left(btrim(project.name), 190) || ' (' || counter || ')';
    END LOOP;
    UPDATE projects SET name = new_name, name_key = lower(btrim(normalize(new_name, NFKC))) WHERE id = project.id;
  END LOOP;
END $$;

ALTER TABLE projects ALTER COLUMN name_key SET NOT NULL;
CREATE UNIQUE INDEX projects_name_key ON projects (account_id, name_key);
CREATE INDEX projects_deletion_idx ON projects (deletes_at) WHERE deletes_at IS NOT NULL;

-- Projects that are gone: each node removes their files, also one that was away when the rows went.
CREATE TABLE deleted_projects (
  id uuid CONSTRAINT deleted_projects_pkey PRIMARY KEY,
  deleted_at timestamptz NOT NULL
);

-- Without these, each session that goes would have the whole tables read.
CREATE INDEX fires_session_idx ON fires (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX change_requests_session_idx ON change_requests (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX clone_credentials_session_idx ON clone_credentials (session_id);
CREATE INDEX tokens_session_idx ON tokens (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX tokens_sandbox_idx ON tokens (sandbox_id) WHERE sandbox_id IS NOT NULL;
