-- A session's conversation: its items, the whole output of its tools, and the files that people attached. It outlives
-- sandboxes and ends with its session.
--
-- `seq` counts the versions of a conversation's items and of its turn, from 1, without gaps. A writer takes the next numbers
-- under the lock of the conversation's row. A reader that has everything up to a number reads the rows above it.
--
-- Operators: stop all nodes before the upgrade. Existing sessions get their conversation when it is first read or written,
-- with their initial prompt.

ALTER TABLE outbox
  DROP CONSTRAINT outbox_actor_kind_known,
  ADD CONSTRAINT outbox_actor_kind_known CHECK (actor_kind IN ('session', 'sandbox', 'change_request', 'conversation'));

CREATE TABLE conversations (
  session_id uuid NOT NULL,
  -- The state machine's snapshot.
  state text NOT NULL DEFAULT 'idle',
  state_context jsonb NOT NULL DEFAULT '{}',
  version integer NOT NULL DEFAULT 1,
  -- The last number that was taken.
  seq integer NOT NULL DEFAULT 0,
  -- The sandbox whose report was written last, and up to which of its numbers.
  sandbox_id uuid,
  sandbox_rev bigint,
  -- What the agent does, as the sandbox said last. turn_seq: the number of the last change of turn or usage.
  turn_state text NOT NULL DEFAULT 'idle',
  turn_since timestamptz NOT NULL,
  turn_waiting_for uuid,
  turn_seq integer NOT NULL DEFAULT 0,
  -- Sums over all items.
  usage jsonb NOT NULL DEFAULT '{"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": 0}',
  -- The size of all items, outputs and attachments.
  bytes bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  CONSTRAINT conversations_pkey PRIMARY KEY (session_id),
  CONSTRAINT conversations_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id) ON DELETE CASCADE,
  CONSTRAINT conversations_state_known CHECK (state IN ('idle', 'running', 'requires_action')),
  CONSTRAINT conversations_turn_state_known CHECK (turn_state IN ('idle', 'running', 'requires_action')),
  CONSTRAINT conversations_sandbox_whole CHECK ((sandbox_id IS NULL) = (sandbox_rev IS NULL))
);

CREATE TABLE conversation_items (
  session_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The number of its last version.
  seq integer NOT NULL,
  -- Its place in the conversation: the number of its first version, or of the one in which the agent accepted a message.
  place integer NOT NULL,
  -- The runtime's own id, the sandbox that reported it last, and the report's number. Null for a message that was not sent.
  native_id text,
  sandbox_id uuid,
  rev bigint NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  record jsonb NOT NULL,
  -- The size of the record.
  bytes integer NOT NULL,
  CONSTRAINT conversation_items_pkey PRIMARY KEY (session_id, id),
  CONSTRAINT conversation_items_seq_key UNIQUE (session_id, seq),
  CONSTRAINT conversation_items_place_key UNIQUE (session_id, place),
  CONSTRAINT conversation_items_native_key UNIQUE (session_id, native_id),
  CONSTRAINT conversation_items_conversation_fkey FOREIGN KEY (session_id) REFERENCES conversations (session_id)
    ON DELETE CASCADE,
  CONSTRAINT conversation_items_kind_known CHECK (kind IN ('message', 'thought', 'tool', 'plan', 'request', 'note')),
  CONSTRAINT conversation_items_status_known CHECK (status IN (
    'queued', 'sending', 'accepted', 'cancelled', 'pending', 'running', 'completed', 'failed', 'interrupted', 'lost'
  ))
);

-- The queue, open requests, and the items that an ended sandbox left open.
CREATE INDEX conversation_items_open_idx ON conversation_items (session_id, place)
  WHERE status IN ('queued', 'sending', 'pending', 'running');

CREATE TABLE conversation_outputs (
  session_id uuid NOT NULL,
  item_id uuid NOT NULL,
  text text NOT NULL,
  bytes integer NOT NULL,
  CONSTRAINT conversation_outputs_pkey PRIMARY KEY (session_id, item_id),
  CONSTRAINT conversation_outputs_item_fkey FOREIGN KEY (session_id, item_id) REFERENCES conversation_items (session_id, id)
    ON DELETE CASCADE,
  CONSTRAINT conversation_outputs_bounded CHECK (octet_length(text) <= 1048576)
);

CREATE TABLE conversation_attachments (
  session_id uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  media_type text NOT NULL,
  sha256 text NOT NULL,
  content bytea NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT conversation_attachments_pkey PRIMARY KEY (session_id, id),
  CONSTRAINT conversation_attachments_conversation_fkey FOREIGN KEY (session_id) REFERENCES conversations (session_id)
    ON DELETE CASCADE,
  CONSTRAINT conversation_attachments_bounded CHECK (octet_length(content) <= 10485760)
);
