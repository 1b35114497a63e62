-- Connectors: the remote servers whose tools agents use through the service (manifest, [[connectors]]).
--
-- connector_credentials is AES-256-GCM bound to project, slug, origin and version: a row that is copied to another place, or
-- whose connector moves to another origin, does not open. A removed credential keeps its row without an envelope, so
-- that a version never comes back. connector_catalogues has the tools of a server, as they were accepted by a person and as they
-- were last seen. The texts are JSON; they are no jsonb, which cannot hold every text. executor_calls is the record of
-- calls: a row is written before a call, and its outcome after it.
-- For an operator: as for secrets, a backup of the credentials opens with the master key alone.

CREATE TABLE connector_credentials (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  version integer NOT NULL,
  origin text NOT NULL,
  envelope bytea,
  updated_at timestamptz NOT NULL,
  updated_by uuid,
  CONSTRAINT connector_credentials_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT connector_credentials_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT connector_credentials_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES users (id),
  CONSTRAINT connector_credentials_version_positive CHECK (version > 0)
);

CREATE TABLE connector_catalogues (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  -- The server. A connector with another URL has no catalogue yet.
  url text NOT NULL,
  -- The revision of the protocol that the server speaks.
  protocol text,
  latest text,
  latest_pin text,
  latest_at timestamptz,
  accepted text,
  accepted_pin text,
  accepted_at timestamptz,
  accepted_by uuid,
  -- Why the last refresh failed. Null: it did not.
  failure text,
  tried_at timestamptz NOT NULL,
  CONSTRAINT connector_catalogues_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT connector_catalogues_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT connector_catalogues_accepted_by_fkey FOREIGN KEY (accepted_by) REFERENCES users (id),
  CONSTRAINT connector_catalogues_latest_whole CHECK (num_nonnulls(protocol, latest, latest_pin, latest_at) IN (0, 4)),
  CONSTRAINT connector_catalogues_accepted_whole CHECK (
    num_nonnulls(accepted, accepted_pin, accepted_at, accepted_by) IN (0, 4)
  )
);

CREATE INDEX connector_catalogues_tried_idx ON connector_catalogues (tried_at);

CREATE TABLE executor_calls (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  -- The session acts for this user.
  user_id uuid NOT NULL,
  started_by text NOT NULL,
  connector text NOT NULL,
  tool text NOT NULL,
  -- The origin that the call goes to, the accepted tool, and the rule that decided. Null: the call was refused before that.
  origin text NOT NULL,
  pin text,
  rule text,
  arguments_digest text NOT NULL,
  arguments_bytes integer NOT NULL,
  -- The beginning of the arguments as JSON, with the project's secrets masked.
  arguments_preview text NOT NULL,
  at timestamptz NOT NULL,
  ended_at timestamptz,
  -- Null: the call is being performed.
  outcome text,
  -- Why, if the outcome is not ok.
  message text,
  upstream_status integer,
  result_bytes integer,
  CONSTRAINT executor_calls_pkey PRIMARY KEY (id),
  CONSTRAINT executor_calls_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT executor_calls_started_by_known CHECK (started_by IN ('user', 'trigger')),
  CONSTRAINT executor_calls_outcome_known CHECK (outcome IN ('ok', 'error', 'denied', 'unknown')),
  CONSTRAINT executor_calls_ended_whole CHECK (num_nonnulls(ended_at, outcome) IN (0, 2))
);

CREATE INDEX executor_calls_project_idx ON executor_calls (project_id, at DESC, id DESC);
CREATE INDEX executor_calls_connector_idx ON executor_calls (project_id, connector, at);
CREATE INDEX executor_calls_open_idx ON executor_calls (session_id, at) WHERE outcome IS NULL;
CREATE INDEX executor_calls_at_idx ON executor_calls (at);
