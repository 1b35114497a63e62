-- A project's Dockerfile is built into an image on the node that boots its sandboxes. Each build is a row, with its actor's
-- memory (machines/environment-build.ts), and has a log.
--
-- For an operator: a project with `.platform/Dockerfile` on its default branch has its environment built from now on. Until
-- now the file was ignored. Without buildah and bubblewrap, and with a service that is not root, nothing can be built, and
-- sessions of such projects fail with `environment_failed`. PLATFORM_BUILDER=none keeps the former behaviour. All manifests are
-- read again after the upgrade. An older version of the service cannot run beside this one.

ALTER TABLE outbox
  DROP CONSTRAINT outbox_actor_kind_known,
  ADD CONSTRAINT outbox_actor_kind_known CHECK (
    actor_kind IN ('session', 'sandbox', 'change_request', 'conversation', 'environment_build')
  );
ALTER TABLE transitions
  DROP CONSTRAINT transitions_actor_kind_known,
  ADD CONSTRAINT transitions_actor_kind_known CHECK (
    actor_kind IN ('session', 'sandbox', 'conversation', 'change_request', 'trigger', 'account', 'environment_build')
  );

-- The Dockerfile of the last good reading, at its commit. Null: the project has none.
ALTER TABLE project_manifests ADD COLUMN environment jsonb;
UPDATE project_manifests SET read_commit = NULL;

CREATE TABLE environment_builds (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  -- It is built on this node, which has its image.
  node_id text NOT NULL,
  -- Equal keys build equal images (domain/environment-source.ts).
  key text NOT NULL,
  source jsonb NOT NULL,
  cause text NOT NULL,
  requested_by uuid,
  status text NOT NULL,
  state_context jsonb NOT NULL,
  version integer NOT NULL DEFAULT 1,
  step jsonb,
  log_bytes bigint NOT NULL DEFAULT 0,
  log_pieces integer NOT NULL DEFAULT 0,
  -- The image of a ready build was removed to make room.
  is_forgotten boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL,
  begun_at timestamptz,
  ended_at timestamptz,
  CONSTRAINT environment_builds_pkey PRIMARY KEY (id),
  CONSTRAINT environment_builds_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT environment_builds_requester_fkey FOREIGN KEY (requested_by) REFERENCES users (id),
  CONSTRAINT environment_builds_cause_known CHECK (cause IN ('manifest', 'session', 'asked', 'refresh')),
  CONSTRAINT environment_builds_status_known CHECK (
    status IN ('queued', 'resolving', 'building', 'exporting', 'ready', 'failed', 'cancelled')
  ),
  CONSTRAINT environment_builds_end_dated CHECK (
    (status IN ('ready', 'failed', 'cancelled')) = (ended_at IS NOT NULL)
  )
);

-- One build of a key at a time on a node.
CREATE UNIQUE INDEX environment_builds_live_key ON environment_builds (project_id, node_id, key)
  WHERE status IN ('queued', 'resolving', 'building', 'exporting');
CREATE INDEX environment_builds_project_idx ON environment_builds (project_id, created_at DESC, id DESC);

CREATE TABLE environment_build_logs (
  build_id uuid NOT NULL,
  number integer NOT NULL,
  text text NOT NULL,
  CONSTRAINT environment_build_logs_pkey PRIMARY KEY (build_id, number),
  CONSTRAINT environment_build_logs_build_fkey FOREIGN KEY (build_id) REFERENCES environment_builds (id) ON DELETE CASCADE
);

-- The build whose image the sandbox sees, or waits for, and whether a newer one was wanted.
ALTER TABLE session_sandboxes
  ADD COLUMN environment_build_id uuid,
  ADD COLUMN environment_is_stale boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT session_sandboxes_environment_build_fkey FOREIGN KEY (environment_build_id)
    REFERENCES environment_builds (id) ON DELETE SET NULL;
CREATE INDEX session_sandboxes_environment_build_idx ON session_sandboxes (environment_build_id)
  WHERE environment_build_id IS NOT NULL;
