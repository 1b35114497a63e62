-- People are asked to review a change request. Existing change requests have no reviewers.

CREATE TABLE change_request_reviewers (
  change_request_id uuid NOT NULL
    CONSTRAINT change_request_reviewers_request_fkey REFERENCES change_requests (id) ON DELETE CASCADE,
  user_id uuid NOT NULL CONSTRAINT change_request_reviewers_user_fkey REFERENCES users (id),
  asked_by uuid NOT NULL CONSTRAINT change_request_reviewers_asked_by_fkey REFERENCES users (id),
  asked_at timestamptz NOT NULL,
  CONSTRAINT change_request_reviewers_pkey PRIMARY KEY (change_request_id, user_id)
);
