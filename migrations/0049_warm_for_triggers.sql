-- Sandboxes also wait for a cron trigger that fires soon (docs/decisions/0073-warm-sandboxes.md). Who a sandbox waits for decides who
-- may take it, and which one goes first if there is no room.
--
-- Operators: nothing to do.

ALTER TABLE warm_sandboxes ADD COLUMN wanted_by text;
UPDATE warm_sandboxes SET wanted_by = CASE WHEN wanted_until IS NULL THEN 'manifest' ELSE 'person' END;
ALTER TABLE warm_sandboxes
  ALTER COLUMN wanted_by SET NOT NULL,
  ADD CONSTRAINT warm_sandboxes_wanted_by_check CHECK (wanted_by IN ('manifest', 'person', 'trigger')),
  ADD CONSTRAINT warm_sandboxes_wanted_whole CHECK ((wanted_by = 'manifest') = (wanted_until IS NULL));
