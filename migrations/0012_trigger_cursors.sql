-- Up to which instant every due instant of a cron trigger has its ledger row (api.md 4 "Queue", last_fired_at).
--
-- A row belongs to one schedule (expression and zone): a trigger that is new, changed, enabled or back in an active project
-- starts counting at that moment, with a new row.

CREATE TABLE trigger_cursors (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  schedule text NOT NULL,
  accounted_until timestamptz NOT NULL,
  CONSTRAINT trigger_cursors_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT trigger_cursors_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);
