-- The memory of the actors of change requests (machines/change-request.ts). A merge that a crash interrupts is finished by
-- the service, and nobody has to ask again.
--
-- `state` is the machine's state. It differs from `status`, which clients see, while a merge is under way.
--
-- An open request with noted commits (base_commit, head_commit) had a merge that broke off or was refused. At its first
-- start the service looks whether the base branch has the head commit. If so, it finishes that merge: merged_by is null
-- then, since the row does not name the user. If not, the request stays open, and no merge is made.
--
-- Operators: stop all nodes before the upgrade. An older version cannot write these rows.

ALTER TABLE outbox
  DROP CONSTRAINT outbox_actor_kind_known,
  ADD CONSTRAINT outbox_actor_kind_known CHECK (actor_kind IN ('session', 'sandbox', 'change_request'));

ALTER TABLE change_requests
  ADD COLUMN state text,
  ADD COLUMN state_context jsonb,
  ADD COLUMN version integer NOT NULL DEFAULT 1;

UPDATE change_requests SET
  state = CASE WHEN status = 'open' AND head_commit IS NOT NULL THEN 'merging' ELSE status END,
  state_context = jsonb_build_object(
    'aim', CASE WHEN status = 'open' AND head_commit IS NOT NULL THEN 'look' END,
    'by', merged_by,
    'message', NULL,
    'sides', CASE WHEN status <> 'closed' AND head_commit IS NOT NULL
      THEN jsonb_build_object('base', base_commit, 'head', head_commit) END,
    'commit', merged_commit,
    'refusal', NULL
  ),
  base_commit = CASE WHEN status <> 'closed' THEN base_commit END,
  head_commit = CASE WHEN status <> 'closed' THEN head_commit END;

INSERT INTO outbox (actor_kind, actor_id, command, created_at)
SELECT 'change_request', id, jsonb_build_object('type', 'lookForMerge', 'sides', state_context -> 'sides'), now()
FROM change_requests WHERE state = 'merging' ORDER BY created_at, id;

ALTER TABLE change_requests
  ALTER COLUMN state SET NOT NULL,
  ALTER COLUMN state_context SET NOT NULL,
  ADD CONSTRAINT change_requests_state_known CHECK (
    state = status OR state = 'merging' AND status IN ('open', 'closed')
  );
