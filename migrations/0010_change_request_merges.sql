-- What the merge of a change request leaves in its row (api.md 6): when, by whom, and which commits.
--
-- base_commit and head_commit are written before git is asked: a service that dies between git's merge and the row finds
-- by them that the work in the default branch is its own. They stay those of the last merge that was begun, and of a
-- merged request say what was merged, so that it still shows its changes when the branches hold the same.
-- merged_commit is the base branch's commit that has the work: the merge's own, or, where the row was made up for later,
-- the tip of that moment. Operators: no request was merged before this.

ALTER TABLE change_requests
  ADD COLUMN base_commit text,
  ADD COLUMN head_commit text,
  ADD COLUMN merged_commit text,
  ADD COLUMN merged_at timestamptz,
  ADD COLUMN merged_by uuid,
  ADD CONSTRAINT change_requests_merged_by_fkey FOREIGN KEY (merged_by) REFERENCES users (id),
  ADD CONSTRAINT change_requests_sides_whole CHECK (num_nonnulls(base_commit, head_commit) IN (0, 2)),
  ADD CONSTRAINT change_requests_merge_whole CHECK (
    num_nonnulls(head_commit, merged_commit, merged_at, merged_by) = 4 AND status = 'merged'
    OR num_nonnulls(merged_commit, merged_at, merged_by) = 0 AND status <> 'merged'
  );
