-- What people say of a change request: comments, also on lines, approvals, and wishes for changes. A project may demand approvals
-- before a merge. Existing projects demand none.

ALTER TABLE projects ADD COLUMN approvals_required integer NOT NULL DEFAULT 0
  CONSTRAINT projects_approvals_required_known CHECK (approvals_required BETWEEN 0 AND 10);

CREATE TABLE change_request_remarks (
  id uuid CONSTRAINT change_request_remarks_pkey PRIMARY KEY,
  change_request_id uuid NOT NULL
    CONSTRAINT change_request_remarks_request_fkey REFERENCES change_requests (id) ON DELETE CASCADE,
  kind text NOT NULL CONSTRAINT change_request_remarks_kind_known CHECK (kind IN ('comment', 'approval', 'changes_requested')),
  body text NOT NULL,
  commit text,
  file text,
  side text CONSTRAINT change_request_remarks_side_known CHECK (side IN ('base', 'head')),
  first_line integer,
  last_line integer,
  reply_to uuid CONSTRAINT change_request_remarks_reply_fkey REFERENCES change_request_remarks (id) ON DELETE CASCADE,
  created_by uuid NOT NULL CONSTRAINT change_request_remarks_created_by_fkey REFERENCES users (id),
  created_at timestamptz NOT NULL,
  edited_at timestamptz,
  resolved_by uuid CONSTRAINT change_request_remarks_resolved_by_fkey REFERENCES users (id),
  resolved_at timestamptz,
  CONSTRAINT change_request_remarks_place_whole CHECK (num_nonnulls(file, side, first_line, last_line) IN (0, 4)),
  CONSTRAINT change_request_remarks_resolution_whole CHECK (num_nonnulls(resolved_by, resolved_at) IN (0, 2))
);
CREATE INDEX change_request_remarks_list_idx ON change_request_remarks (change_request_id, created_at, id);
CREATE INDEX change_request_remarks_reply_idx ON change_request_remarks (reply_to) WHERE reply_to IS NOT NULL;
