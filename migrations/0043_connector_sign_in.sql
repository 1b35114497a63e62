-- Connectors whose auth is oauth or client_credentials: what their servers gave to the service, and sign-ins that are under way.
--
-- connector_grants has the tokens of a connector, sealed as credentials are, and bound to project, slug, origin, kind and version. One
-- node at a time renews them: it holds the lease of the row, and writes the new tokens as the next version before it uses
-- them. A removed grant keeps its row, so that a version never comes back. failure is the reason why a grant is refused, or why
-- the last attempt to renew it did not succeed. connector_flows has the sign-ins that people began in the last ten minutes. A row
-- is bound to its person, then to the browser in which she opened the address, and is removed by its first callback.
-- For an operator: existing credentials do not change. A backup of the new tables opens with the master key alone.

ALTER TABLE connector_credentials
  -- A value that is sent to the server, or the client of a server with OAuth.
  ADD COLUMN kind text NOT NULL DEFAULT 'value',
  ADD CONSTRAINT connector_credentials_kind_known CHECK (kind IN ('value', 'oauth', 'client_credentials'));

CREATE TABLE connector_grants (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  version integer NOT NULL,
  origin text NOT NULL,
  kind text NOT NULL,
  -- empty: a client is stored, and no token was fetched yet. refused: the server does not renew it any more.
  status text NOT NULL,
  envelope bytea,
  issuer text,
  -- When the access token ends. Null: the server does not say.
  expires_at timestamptz,
  granted_at timestamptz NOT NULL,
  granted_by uuid,
  renewed_at timestamptz,
  failure text,
  failed_at timestamptz,
  lease_holder uuid,
  lease_until timestamptz,
  CONSTRAINT connector_grants_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT connector_grants_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT connector_grants_granted_by_fkey FOREIGN KEY (granted_by) REFERENCES users (id),
  CONSTRAINT connector_grants_version_positive CHECK (version > 0),
  CONSTRAINT connector_grants_kind_known CHECK (kind IN ('oauth', 'client_credentials')),
  CONSTRAINT connector_grants_status_known CHECK (status IN ('empty', 'held', 'refused', 'removed')),
  CONSTRAINT connector_grants_held_whole CHECK ((status = 'held') = (envelope IS NOT NULL)),
  CONSTRAINT connector_grants_refused_whole CHECK (status <> 'refused' OR failure IS NOT NULL),
  CONSTRAINT connector_grants_failure_whole CHECK (num_nonnulls(failure, failed_at) IN (0, 2)),
  CONSTRAINT connector_grants_lease_whole CHECK (num_nonnulls(lease_holder, lease_until) IN (0, 2))
);

CREATE TABLE connector_flows (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  -- The person who began it. A second one of hers replaces the first.
  user_id uuid NOT NULL,
  origin text NOT NULL,
  -- Of the address that she opens, and of the state that comes back.
  ticket_hash text NOT NULL,
  state_hash text NOT NULL,
  -- Of the cookie that her browser got. Null: she has not opened the address.
  browser_hash text,
  envelope bytea NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT connector_flows_pkey PRIMARY KEY (project_id, slug, user_id),
  CONSTRAINT connector_flows_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT connector_flows_user_fkey FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT connector_flows_ticket_unique UNIQUE (ticket_hash),
  CONSTRAINT connector_flows_state_unique UNIQUE (state_hash)
);

CREATE INDEX connector_flows_expires_idx ON connector_flows (expires_at);
