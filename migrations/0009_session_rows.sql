-- What a list of sessions shows of each is stored when it happens: what the branch changes, with a push; what the agent said
-- last and what it asks, with its report. Sessions from before this change have none of it until their next push or report.

ALTER TABLE project_sessions ADD COLUMN changes jsonb;
ALTER TABLE conversations ADD COLUMN turn_request jsonb, ADD COLUMN last_sentence text;

-- The newest change request of a session's branch, whose name is the session's id.
CREATE INDEX change_requests_head_idx ON change_requests (project_id, head_ref, number DESC);
