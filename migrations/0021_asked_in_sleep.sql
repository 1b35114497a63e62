-- An agent that waited for a person when its session went to sleep still needs that person: lists find these sessions by an index. Nothing
-- changes for existing sessions.

CREATE INDEX project_sessions_asked ON project_sessions (account_id, project_id)
  WHERE status = 'stopped' AND state_context ->> 'asked' IS NOT NULL;
