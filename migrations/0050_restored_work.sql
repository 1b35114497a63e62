-- A restart can bring the session's saved work back: whether it was asked to, and what the new sandbox answered. Sessions from
-- before were not asked. Nothing for an operator to do.

ALTER TABLE project_sessions
  ADD COLUMN restore_saved boolean NOT NULL DEFAULT false,
  ADD COLUMN restored jsonb;
