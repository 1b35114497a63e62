-- Sandboxes that are started before a session needs them (docs/decisions/0073-warm-sandboxes.md). A row is older than its sandbox, so
-- that a crash leaves no sandbox without one. The row goes when the session's own record of the sandbox is written.

CREATE TABLE warm_sandboxes (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  node_id text NOT NULL,
  -- A digest of everything that the sandbox was started with. Null: it is not ready yet.
  recipe text,
  -- The project's secrets that it was started with, as in session_sandboxes.
  secrets_revision integer,
  secret_versions jsonb,
  -- Null: the project's manifest asks for it. Otherwise a person is about to start a session.
  wanted_until timestamptz,
  created_at timestamptz NOT NULL,
  -- The session that gets it. Null: none yet.
  session_id uuid,
  claimed_at timestamptz,
  CONSTRAINT warm_sandboxes_pkey PRIMARY KEY (id),
  CONSTRAINT warm_sandboxes_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT warm_sandboxes_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id) ON DELETE CASCADE,
  CONSTRAINT warm_sandboxes_session_unique UNIQUE (session_id),
  CONSTRAINT warm_sandboxes_ready_whole CHECK (num_nonnulls(recipe, secrets_revision, secret_versions) IN (0, 3)),
  CONSTRAINT warm_sandboxes_claim_whole CHECK (num_nonnulls(session_id, claimed_at) IN (0, 2)),
  CONSTRAINT warm_sandboxes_claimed_ready CHECK (session_id IS NULL OR recipe IS NOT NULL)
);

CREATE INDEX warm_sandboxes_project_idx ON warm_sandboxes (project_id);
CREATE INDEX warm_sandboxes_node_idx ON warm_sandboxes (node_id);

-- Of a sandbox that waited for its session. Null: it was started for it.
ALTER TABLE session_sandboxes ADD COLUMN warm_recipe text;
