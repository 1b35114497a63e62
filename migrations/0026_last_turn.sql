-- How a session's last turn ended: its state, the error if there was one, and when, with the sandbox and the turn's number
-- there, so that a report that comes twice is written once. Null until a turn has ended; existing sessions have none.
-- Nothing for an operator to do.

ALTER TABLE project_sessions ADD COLUMN last_turn jsonb;
