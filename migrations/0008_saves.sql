-- What a session says of its saved work names what is missing, and an idle session whose work cannot be saved stays. Rows from before this
-- change say what they knew: a save is complete if it had no error, and no one counted its files.

ALTER TABLE project_sessions ADD COLUMN unsaved jsonb;

CREATE FUNCTION saved_in_full(saved jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object(
    'state', CASE
      WHEN saved ->> 'error' IS NULL THEN 'complete'
      WHEN saved ->> 'wip' IS NULL THEN 'failed'
      ELSE 'partial'
    END,
    'at', NULL,
    'wip', saved -> 'wip',
    'files', 0,
    'commits', 0,
    'pending', '[]'::jsonb,
    'skipped', saved -> 'skipped',
    'error', saved -> 'error',
    'node', NULL
  )
$$;

UPDATE project_sessions SET saved = saved_in_full(saved) WHERE saved IS NOT NULL;
-- A sandbox that had ended when the service stopped has not told its session yet.
UPDATE outbox SET command = jsonb_set(command, '{saved}', saved_in_full(command -> 'saved'))
  WHERE actor_kind = 'sandbox' AND command ->> 'type' = 'reportEnded';

DROP FUNCTION saved_in_full;

UPDATE project_sessions SET restored = restored || '{"refs": [], "renamed": []}' WHERE restored IS NOT NULL;
