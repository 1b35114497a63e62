-- Accounts and the users who act in them.
--
-- active_sessions is the account's slot counter: sessions in provisioning and running. It moves only in the transaction
-- that moves a session, by conditional updates, so it can be read as the truth. Counting rows instead lets parallel
-- creates pass the cap. A cap may be lowered below the counter: nothing is ended, nothing new starts until there is room.
-- Operators: `SELECT count(*) FROM project_sessions WHERE account_id = … AND status IN ('provisioning', 'running')` must
-- equal the counter at every commit. It is a fault of the service if it does not.

CREATE TABLE accounts (
  id uuid NOT NULL,
  name text NOT NULL,
  tier text NOT NULL,
  session_cap integer NOT NULL,
  active_sessions integer NOT NULL DEFAULT 0,
  -- How many waiting fires were ever started; projects.drained_turn remembers whose turn it was (round robin).
  drained_turns bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  CONSTRAINT accounts_pkey PRIMARY KEY (id),
  CONSTRAINT accounts_session_cap_not_negative CHECK (session_cap >= 0),
  CONSTRAINT accounts_active_sessions_not_negative CHECK (active_sessions >= 0)
);

CREATE TABLE users (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT users_pkey PRIMARY KEY (id),
  CONSTRAINT users_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id)
);

CREATE INDEX users_account_idx ON users (account_id);
