-- The sessions of all projects of an account are listed, newest first (api.md 3): on the dashboard's first page, and by its search.
--
-- For an operator: building the index blocks new sessions.

CREATE INDEX project_sessions_account_idx ON project_sessions (account_id, created_at DESC, id DESC)
  WHERE deleted_at IS NULL;
