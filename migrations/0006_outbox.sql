-- Commands of the state machines that are written down and not yet known to be done. A row is deleted in the transaction
-- that saves its outcome; what is left after a crash is performed again, so every command may be performed twice.
-- Operators: an old row is work that does not get done. Its command says what, the actor's log says why.

CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY,
  actor_kind text NOT NULL,
  actor_id uuid NOT NULL,
  command jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT outbox_pkey PRIMARY KEY (id),
  CONSTRAINT outbox_actor_kind_known CHECK (actor_kind IN ('session', 'sandbox'))
);

CREATE INDEX outbox_actor_idx ON outbox (actor_kind, actor_id, id);
