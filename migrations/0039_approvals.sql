-- A call whose policy is ask waits for a person. Its row is written before anything else: the record of calls has the call with the
-- outcome pending, and approvals has what the call needs until it is settled.
--
-- Arguments and result are sealed as secrets are, and bound to the approval's id. The arguments are removed when the call is settled,
-- the result a day after the agent got it. moved_at is the instant of the last change of status: it says how long a call
-- is under way. attended_until is a lease of the caller that waits for the result; after it the result becomes a message.
-- For an operator: existing calls do not change. The table is empty until the first call asks.

ALTER TABLE executor_calls
  -- When an approved call was sent. Null: at the instant `at`, or not at all.
  ADD COLUMN begun_at timestamptz,
  -- The person who approved or denied it.
  ADD COLUMN approver_id uuid,
  ADD CONSTRAINT executor_calls_approver_fkey FOREIGN KEY (approver_id) REFERENCES users (id),
  DROP CONSTRAINT executor_calls_outcome_known,
  ADD CONSTRAINT executor_calls_outcome_known CHECK (outcome IN ('ok', 'error', 'denied', 'pending', 'unknown')),
  DROP CONSTRAINT executor_calls_ended_whole,
  ADD CONSTRAINT executor_calls_ended_whole CHECK ((ended_at IS NULL) = (outcome IS NULL OR outcome = 'pending'));

CREATE INDEX executor_calls_begun_idx ON executor_calls (project_id, connector, begun_at) WHERE begun_at IS NOT NULL;

CREATE TABLE approvals (
  -- The id of the call.
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  status text NOT NULL,
  arguments_envelope bytea,
  result_envelope bytea,
  -- Why it is denied, refused or unknown.
  message text,
  asked_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  decided_by uuid,
  decided_at timestamptz,
  moved_at timestamptz NOT NULL,
  attended_until timestamptz NOT NULL,
  delivered_at timestamptz,
  CONSTRAINT approvals_pkey PRIMARY KEY (id),
  CONSTRAINT approvals_call_fkey FOREIGN KEY (id) REFERENCES executor_calls (id) ON DELETE CASCADE,
  CONSTRAINT approvals_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT approvals_decided_by_fkey FOREIGN KEY (decided_by) REFERENCES users (id),
  CONSTRAINT approvals_status_known CHECK (
    status IN ('pending', 'approved', 'calling', 'done', 'denied', 'refused', 'expired', 'unknown')
  ),
  CONSTRAINT approvals_decided_whole CHECK (num_nonnulls(decided_by, decided_at) IN (0, 2)),
  CONSTRAINT approvals_called_by_a_person CHECK (status IN ('pending', 'expired') OR decided_by IS NOT NULL),
  CONSTRAINT approvals_arguments_kept CHECK (
    (status IN ('pending', 'approved', 'calling')) = (arguments_envelope IS NOT NULL)
  )
);

CREATE INDEX approvals_project_idx ON approvals (project_id, asked_at DESC, id DESC);
CREATE INDEX approvals_open_idx ON approvals (moved_at) WHERE delivered_at IS NULL;
CREATE INDEX approvals_result_idx ON approvals (delivered_at) WHERE result_envelope IS NOT NULL;
