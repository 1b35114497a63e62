-- A delivery that came again names the row that answered it, so that its replay finds the stored request. Rows without a value are from
-- before this change. Pull requests are found by their number when a code host reports one back.

ALTER TABLE fires ADD COLUMN duplicate_of uuid;
CREATE INDEX change_requests_pull_idx ON change_requests (project_id, pull_number) WHERE pull_number IS NOT NULL;
