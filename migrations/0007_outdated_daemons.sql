-- A session whose sandbox is too old for an upgraded service stops for a reason of its own. Rows from before this change are unchanged.

ALTER TABLE project_sessions DROP CONSTRAINT project_sessions_stop_reason_known;
ALTER TABLE project_sessions ADD CONSTRAINT project_sessions_stop_reason_known
  CHECK (stop_reason IN ('requested', 'idle', 'outdated', 'deleted', 'user_deactivated'));
