-- A person's request for a session may wait in the queue, as fires of triggers do. It is a row of the ledger without a trigger, and
-- its session is made when a slot is free. A resting session may be stopped to make room for it.

ALTER TABLE fires ALTER COLUMN trigger_slug DROP NOT NULL,
  DROP CONSTRAINT fires_kind_known,
  ADD CONSTRAINT fires_kind_known CHECK (kind IN ('cron', 'webhook', 'manual', 'session')),
  ADD CONSTRAINT fires_session_has_no_trigger CHECK ((kind = 'session') = (trigger_slug IS NULL));
ALTER TABLE fire_queue ALTER COLUMN trigger_slug DROP NOT NULL;

ALTER TABLE project_sessions DROP CONSTRAINT project_sessions_stop_reason_known;
ALTER TABLE project_sessions ADD CONSTRAINT project_sessions_stop_reason_known
  CHECK (stop_reason IN ('requested', 'idle', 'made_room', 'outdated', 'deleted', 'user_deactivated'));
