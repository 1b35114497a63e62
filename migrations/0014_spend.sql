-- Limits of what models may cost or use, what was spent, and amounts that are reserved for calls under way. Without a limit nothing
-- changes. What was spent before this migration is not known, so a limit counts from now on.

ALTER TABLE model_usage
  -- Of calls whose answer broke off or named no tokens.
  ADD COLUMN estimated_tokens bigint NOT NULL DEFAULT 0,
  -- In billionths of a dollar, by the prices that held. 0 where the model has none.
  ADD COLUMN cost bigint NOT NULL DEFAULT 0;

-- Dollars for a million tokens, by the model's id at the provider: what an owner sets in place of the table of the service.
ALTER TABLE model_providers ADD COLUMN prices jsonb NOT NULL DEFAULT '{}';

CREATE TABLE spend_limits (
  id uuid CONSTRAINT spend_limits_pkey PRIMARY KEY,
  account_id uuid NOT NULL CONSTRAINT spend_limits_account_fkey REFERENCES accounts (id),
  -- Null for limits of the account, of a person and of each session.
  project_id uuid CONSTRAINT spend_limits_project_fkey REFERENCES projects (id) ON DELETE CASCADE,
  scope text NOT NULL CONSTRAINT spend_limits_scope_known
    CHECK (scope IN ('session', 'each_session', 'trigger', 'person', 'project', 'account')),
  -- The id of a session, a person or a project, or `project/slug`. Empty for the account and for each session.
  subject text NOT NULL,
  unit text NOT NULL CONSTRAINT spend_limits_unit_known CHECK (unit IN ('usd', 'tokens')),
  -- Billionths of a dollar, or tokens.
  amount bigint NOT NULL CONSTRAINT spend_limits_amount_positive CHECK (amount > 0),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX spend_limits_subject_key ON spend_limits (account_id, scope, subject);
CREATE INDEX spend_limits_project_idx ON spend_limits (project_id);

CREATE TABLE spend (
  account_id uuid NOT NULL CONSTRAINT spend_account_fkey REFERENCES accounts (id),
  scope text NOT NULL CONSTRAINT spend_scope_known CHECK (scope IN ('session', 'trigger', 'person', 'project', 'account')),
  subject text NOT NULL,
  -- `YYYY-MM` or `YYYY-MM-DD`, in UTC. Empty for a session: all of its time.
  period text NOT NULL,
  tokens bigint NOT NULL,
  cost bigint NOT NULL,
  -- The limit's amount of which four fifths were told. Null: not told yet.
  noted_amount bigint,
  CONSTRAINT spend_pkey PRIMARY KEY (account_id, period, scope, subject)
);

CREATE TABLE spend_reservations (
  id uuid CONSTRAINT spend_reservations_pkey PRIMARY KEY,
  account_id uuid NOT NULL CONSTRAINT spend_reservations_account_fkey REFERENCES accounts (id),
  -- `scope/subject/period` of each sum that the call counts for.
  counts text[] NOT NULL,
  tokens bigint NOT NULL,
  cost bigint NOT NULL,
  -- The reservation of a node that died ends by itself.
  expires_at timestamptz NOT NULL
);
CREATE INDEX spend_reservations_account_idx ON spend_reservations (account_id, expires_at);
