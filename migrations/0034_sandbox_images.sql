-- A sandbox may see the file system of an image that its project names. Its record says which one (api.md 3).
--
-- For an operator: adding the column takes a moment, whatever the table's size.

ALTER TABLE session_sandboxes ADD COLUMN image text;
