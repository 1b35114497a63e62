-- The pull request that a code host shows beside a change request (api.md 2, `pull_requests`), so that each end of one is
-- known to the other.
--
-- pull_status is `wanted` before the host is asked to open one: a service that dies between the host's pull request and
-- the row looks for it there. After that it is what the host was last seen to say. What was merged at the host has no
-- user of ours: merged_by is null then. Operators: requests from before have none; the open ones get theirs.

ALTER TABLE change_requests
  ADD COLUMN pull_number integer,
  ADD COLUMN pull_url text,
  ADD COLUMN pull_status text,
  ADD CONSTRAINT change_requests_pull_whole CHECK (
    pull_status IS NULL AND num_nonnulls(pull_number, pull_url) = 0
    OR pull_status = 'wanted' AND num_nonnulls(pull_number, pull_url) = 0
    OR pull_status IN ('open', 'merged', 'closed') AND num_nonnulls(pull_number, pull_url) = 2
  ),
  DROP CONSTRAINT change_requests_merge_whole,
  ADD CONSTRAINT change_requests_merge_whole CHECK (
    num_nonnulls(head_commit, merged_commit, merged_at) = 3 AND status = 'merged'
    OR num_nonnulls(merged_commit, merged_at, merged_by) = 0 AND status <> 'merged'
  );

CREATE INDEX change_requests_pulls_idx ON change_requests (project_id, number)
  WHERE status = 'open' OR pull_status IN ('wanted', 'open');
