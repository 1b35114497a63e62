-- What became of a session's work when its sandbox was torn down: the commit on refs/wip/<session id>, what is not in it,
-- or why nothing could be saved. A running session that is to end says why while it waits for that; sessions and sandboxes
-- from before are not about to end. Nothing for an operator to do.

ALTER TABLE project_sessions ADD COLUMN saved jsonb;

UPDATE project_sessions SET state_context = state_context || '{"ending": null}';
UPDATE session_sandboxes SET state_context = state_context || '{"ending": null}';
