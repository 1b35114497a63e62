-- People keep their own subscriptions at the makers of agent runtimes, encrypted as secrets of projects are. A sandbox that got one is noted
-- before it starts, so that it can be withdrawn. Nothing changes for existing sessions.

CREATE TABLE subscriptions (
  id uuid NOT NULL CONSTRAINT subscriptions_pkey PRIMARY KEY,
  account_id uuid NOT NULL CONSTRAINT subscriptions_account_fkey REFERENCES accounts (id),
  -- The person whose own it is.
  user_id uuid NOT NULL CONSTRAINT subscriptions_user_fkey REFERENCES users (id),
  runtime text NOT NULL,
  sealed_version integer NOT NULL,
  envelope bytea NOT NULL,
  saved_at timestamptz NOT NULL,
  -- When a sandbox last gave a renewed file back.
  renewed_at timestamptz,
  -- When a sandbox last started with it.
  used_at timestamptz,
  CONSTRAINT subscriptions_runtime_key UNIQUE (user_id, runtime)
);

CREATE TABLE delivered_subscriptions (
  sandbox_id uuid NOT NULL CONSTRAINT delivered_subscriptions_pkey PRIMARY KEY
    CONSTRAINT delivered_subscriptions_sandbox_fkey REFERENCES session_sandboxes (id) ON DELETE CASCADE,
  -- Without a foreign key: one that is deleted may still be in the sandbox.
  subscription_id uuid NOT NULL,
  user_id uuid NOT NULL CONSTRAINT delivered_subscriptions_user_fkey REFERENCES users (id),
  runtime text NOT NULL
);
CREATE INDEX delivered_subscriptions_user_idx ON delivered_subscriptions (user_id);
