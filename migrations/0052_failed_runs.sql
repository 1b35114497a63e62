-- A run whose session failed was shown as fired, and no filter found it. session_failed says that the fire's session, or its last turn,
-- failed. It is written with the session, only when it changes. So the list of failed runs needs no look at the sessions.
-- For an operator: this looks once at all fires and sessions: seconds for a million of them.

ALTER TABLE fires ADD COLUMN session_failed boolean NOT NULL DEFAULT false;

UPDATE fires SET session_failed = true
FROM project_sessions AS session
WHERE session.fire_id = fires.id AND (session.status = 'failed' OR session.last_turn ->> 'state' = 'failed');

CREATE INDEX fires_failed_idx ON fires (project_id, received_at, id) WHERE status = 'failed' OR session_failed;
CREATE INDEX fires_failed_trigger_idx ON fires (project_id, trigger_slug, received_at, id)
  WHERE status = 'failed' OR session_failed;
