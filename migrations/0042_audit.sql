-- The audit record: who did what, from where. A row is written in the transaction of the change that it records, and never changed.
-- Rows refer to nothing, because they outlive what they name: browsers are deleted, and people may be renamed.
--
-- Operators: the record begins with this upgrade. Rows go after PLATFORM_AUDIT_RETENTION_MS, a year by default.
CREATE TABLE audit_events (
  id uuid NOT NULL,
  at timestamptz NOT NULL,
  -- Null: the service had no account yet.
  account_id uuid,
  project_id uuid,
  actor_kind text NOT NULL,
  -- A person, or the session of an agent.
  actor_id uuid,
  actor_name text,
  token_id uuid,
  action text NOT NULL,
  target text,
  outcome text NOT NULL,
  address text,
  user_agent text,
  request_id text,
  changes jsonb NOT NULL,
  CONSTRAINT audit_events_pkey PRIMARY KEY (id),
  CONSTRAINT audit_events_actor_known CHECK (
    actor_kind IN ('person', 'session', 'trigger', 'operator', 'service', 'unknown')
  ),
  CONSTRAINT audit_events_outcome_known CHECK (outcome IN ('done', 'begun', 'refused')),
  CONSTRAINT audit_events_changes_object CHECK (jsonb_typeof(changes) = 'object')
);
-- One index for each filter, in the order of the pages.
CREATE INDEX audit_events_account_idx ON audit_events (account_id, at DESC, id DESC);
CREATE INDEX audit_events_project_idx ON audit_events (project_id, at DESC, id DESC) WHERE project_id IS NOT NULL;
CREATE INDEX audit_events_actor_idx ON audit_events (account_id, actor_id, at DESC, id DESC) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_action_idx ON audit_events (account_id, action, at DESC, id DESC);
-- For pruning: rows lie in the order of their instants. A B-tree would also be chosen for pages with a filter, and read far more rows.
CREATE INDEX audit_events_at_idx ON audit_events USING brin (at);

-- A row that was changed would be no record. Pruning deletes rows.
CREATE FUNCTION audit_events_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of audit_events are never changed';
END;
$$;
CREATE TRIGGER audit_events_fixed BEFORE UPDATE ON audit_events
  FOR EACH ROW EXECUTE FUNCTION audit_events_refuse_update();
