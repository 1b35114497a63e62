-- The ledger of fires and the queue of those that wait for a slot (api.md 4 "Ledger", "Queue").
--
-- Every due cron instant and every authentic webhook leaves exactly one row of another status than 'duplicate'; the two
-- unique indexes are what that rests on. fire_queue holds what the waiting fire needs to become a session: prompts are
-- rendered when the fire arrives, so `session` is the finished draft.

CREATE TABLE fires (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  project_id uuid NOT NULL,
  trigger_slug text NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  reason text,
  scheduled_for timestamptz,
  received_at timestamptz NOT NULL,
  delivery_id text,
  -- This row answers for its delivery id; false when a later delivery took its place after the 24 h.
  answers_delivery boolean NOT NULL,
  session_id uuid,
  attempts integer NOT NULL,
  replay_of uuid,
  -- When its session was made; the newest of a trigger is its last_fired_at.
  fired_at timestamptz,
  CONSTRAINT fires_pkey PRIMARY KEY (id),
  CONSTRAINT fires_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT fires_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT fires_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT fires_kind_known CHECK (kind IN ('cron', 'webhook', 'manual')),
  CONSTRAINT fires_status_known CHECK (
    status IN ('queued', 'fired', 'failed', 'skipped', 'expired', 'cancelled', 'duplicate')
  ),
  CONSTRAINT fires_cron_has_instant CHECK (kind <> 'cron' OR scheduled_for IS NOT NULL),
  CONSTRAINT fires_fired_has_session CHECK (
    (status = 'fired') = (session_id IS NOT NULL) AND (status = 'fired') = (fired_at IS NOT NULL)
  )
);

CREATE UNIQUE INDEX fires_delivery_key ON fires (project_id, trigger_slug, delivery_id) WHERE answers_delivery;
CREATE UNIQUE INDEX fires_instant_key ON fires (project_id, trigger_slug, scheduled_for)
  WHERE kind = 'cron' AND replay_of IS NULL AND status <> 'duplicate';
CREATE INDEX fires_project_idx ON fires (project_id, received_at DESC, id DESC);
CREATE INDEX fires_trigger_idx ON fires (project_id, trigger_slug, received_at DESC, id DESC);

CREATE TABLE fire_queue (
  fire_id uuid NOT NULL,
  account_id uuid NOT NULL,
  project_id uuid NOT NULL,
  trigger_slug text NOT NULL,
  kind text NOT NULL,
  session jsonb NOT NULL,
  queued_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- Order of arrival: instants alone may be equal.
  arrival bigint GENERATED ALWAYS AS IDENTITY,
  CONSTRAINT fire_queue_pkey PRIMARY KEY (fire_id),
  CONSTRAINT fire_queue_fire_fkey FOREIGN KEY (fire_id) REFERENCES fires (id) ON DELETE CASCADE
);

CREATE INDEX fire_queue_account_idx ON fire_queue (account_id, project_id, arrival);
-- A cron trigger has at most one waiting fire.
CREATE UNIQUE INDEX fire_queue_cron_key ON fire_queue (project_id, trigger_slug) WHERE kind = 'cron';
