-- When a sandbox got its place among the boots of its node; from then on its deadline counts (api.md 3).
--
-- A node boots so many sandboxes at once (PLATFORM_BOOTS_AT_ONCE). The others wait, and this column tells those that wait
-- from those that boot. Operators: sandboxes of before have null, whatever became of them.

ALTER TABLE session_sandboxes ADD COLUMN boot_started_at timestamptz;
