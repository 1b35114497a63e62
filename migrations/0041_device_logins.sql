-- Programs without a browser that wait for a person to sign them in (RFC 8628). Only hashes of their codes are kept.
CREATE TABLE device_logins (
  id uuid NOT NULL,
  device_hash text NOT NULL,
  user_hash text NOT NULL,
  client text NOT NULL,
  address text,
  user_agent text,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- When the program may ask again, and how long it waits from one request to the next.
  next_poll_at timestamptz NOT NULL,
  poll_ms integer NOT NULL,
  state text NOT NULL DEFAULT 'waiting',
  user_id uuid,
  project_id uuid,
  token_expires_at timestamptz,
  CONSTRAINT device_logins_pkey PRIMARY KEY (id),
  CONSTRAINT device_logins_device_unique UNIQUE (device_hash),
  CONSTRAINT device_logins_user_hash_unique UNIQUE (user_hash),
  CONSTRAINT device_logins_user_fkey FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT device_logins_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT device_logins_state_known CHECK (state IN ('waiting', 'approved', 'denied')),
  CONSTRAINT device_logins_decided CHECK ((state = 'waiting') = (user_id IS NULL))
);
CREATE INDEX device_logins_expiry_idx ON device_logins (expires_at, id);
CREATE INDEX device_logins_user_idx ON device_logins (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX device_logins_project_idx ON device_logins (project_id) WHERE project_id IS NOT NULL;

-- Wrong codes that a person typed.
ALTER TABLE users
  ADD COLUMN code_misses integer NOT NULL DEFAULT 0,
  ADD COLUMN code_misses_since timestamptz;
