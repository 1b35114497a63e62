-- What the receiver and the scheduler hold of a project in memory, and how they learn that it changed (api.md 4
-- "Admission").
--
-- `version` rises with every change of what triggers go by: status, pause, default branch, manifest, secrets. An admission
-- names the version it decided by and is refused where that is not the newest. `changed_tx` is the transaction of that
-- change: a reader that asks for everything from the oldest transaction which was running at its last look misses nothing,
-- however late that one commits.

ALTER TABLE projects
  ADD COLUMN version bigint NOT NULL DEFAULT 1,
  ADD COLUMN changed_tx xid8 NOT NULL DEFAULT pg_current_xact_id();

CREATE INDEX projects_changed_idx ON projects (changed_tx);

-- Those of the triggers' agents that have a file in the commit of the last good reading: with them its text says everything,
-- and no repository is asked when the service starts.
ALTER TABLE project_manifests
  ADD COLUMN agents text[] NOT NULL DEFAULT '{}',
  -- Where the error is, as far as it is known.
  ADD COLUMN error_path text,
  ADD COLUMN error_line integer;
