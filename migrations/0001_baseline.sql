-- The schema from which every later one is reached: the whole of it, in sections by noun. Later migrations change it, one subject each.
--
-- Conventions: instants are timestamptz. States and kinds are text with a check, or an enum. Each constraint and index has a name. A column
-- `version` fences writers: a save changes the row only at the version that its writer read. `state_context` is the part of a state
-- machine's memory that has no column. An `envelope` is AES-256-GCM under the master key and bound to its row: a row that is copied to
-- another place does not open. In `(… IS NULL) = (… IS NULL)` and num_nonnulls, columns have values together or not at all.
--
-- Operators: a backup of this database opens only with the master key, which is not in it.

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Accounts and people
-- ---------------------------------------------------------------------------------------------------------------------------------

-- active_sessions is the account's slot counter: sessions in provisioning and running. Only the transaction that moves a session moves
-- it, by a conditional update. Counting rows instead lets parallel creates pass the cap. A cap may be lowered below the counter: nothing
-- is ended, and nothing new starts until there is room. The other counters move with what they count: counting takes as long as the
-- queue is.
-- Operators: `SELECT count(*) FROM project_sessions WHERE account_id = … AND status IN ('provisioning', 'running')` equals the counter at
-- every commit. If it does not, the service has a fault.
CREATE TABLE accounts (
  id uuid NOT NULL,
  name text NOT NULL,
  tier text NOT NULL,
  session_cap integer NOT NULL,
  active_sessions integer NOT NULL DEFAULT 0,
  -- How many waiting fires were ever started. projects.drained_turn remembers whose turn it was (round robin).
  drained_turns bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  queued_fires integer NOT NULL DEFAULT 0,
  -- The size of its rows in fire_requests.
  stored_request_bytes bigint NOT NULL DEFAULT 0,
  CONSTRAINT accounts_pkey PRIMARY KEY (id),
  CONSTRAINT accounts_session_cap_not_negative CHECK (session_cap >= 0),
  CONSTRAINT accounts_active_sessions_not_negative CHECK (active_sessions >= 0),
  CONSTRAINT accounts_queued_fires_not_negative CHECK (queued_fires >= 0)
);

-- A person is never deleted, because rows name her: she is deactivated.
CREATE TABLE users (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  -- In the account. Her role in a project is in project_members.
  role text NOT NULL,
  deactivated_at timestamptz,
  -- Wrong codes of device_logins that she typed.
  code_misses integer NOT NULL DEFAULT 0,
  code_misses_since timestamptz,
  -- With a sign-in provider, her tokens need a sign-in from time to time. The time counts from here. Null: from created_at.
  signed_in_at timestamptz,
  CONSTRAINT users_pkey PRIMARY KEY (id),
  CONSTRAINT users_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT users_role_known CHECK (role IN ('member', 'owner'))
);

CREATE INDEX users_account_idx ON users (account_id);

-- What a sign-in provider calls a person. Never an e-mail address: another person can have it later.
CREATE TABLE identities (
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  id uuid NOT NULL,
  -- As the provider shows it.
  name text NOT NULL,
  signed_in_at timestamptz,
  CONSTRAINT identities_pkey PRIMARY KEY (issuer, subject),
  CONSTRAINT identities_id_unique UNIQUE (id),
  CONSTRAINT identities_user_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);

CREATE INDEX identities_user_idx ON identities (user_id);

-- An invitation lets a new person in once. `projects` has the grants: [{"projectId": …, "role": …}].
CREATE TABLE invitations (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  hash text NOT NULL,
  name text NOT NULL,
  role text NOT NULL,
  projects jsonb NOT NULL,
  created_by uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  accepted_at timestamptz,
  accepted_by uuid,
  revoked_at timestamptz,
  CONSTRAINT invitations_pkey PRIMARY KEY (id),
  CONSTRAINT invitations_hash_key UNIQUE (hash),
  CONSTRAINT invitations_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT invitations_created_by_fkey FOREIGN KEY (created_by) REFERENCES users (id),
  CONSTRAINT invitations_accepted_by_fkey FOREIGN KEY (accepted_by) REFERENCES users (id),
  CONSTRAINT invitations_accepted_whole CHECK ((accepted_at IS NULL) = (accepted_by IS NULL)),
  CONSTRAINT invitations_role_known CHECK (role IN ('member', 'owner'))
);

CREATE INDEX invitations_account_idx ON invitations (account_id, created_at DESC, id DESC);

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Projects
-- ---------------------------------------------------------------------------------------------------------------------------------

-- The receiver and the scheduler keep projects in memory (api.md 4 "Admission"). `version` rises with every change of what triggers go
-- by: status, pause, default branch, manifest, secrets. An admission names the version that it used, and is refused if that is not the
-- newest. `changed_tx` is the transaction of that change: a reader that asks for everything from the oldest transaction that was running
-- at its last look misses nothing, however late that transaction commits.
CREATE TABLE projects (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  name text NOT NULL,
  status text NOT NULL DEFAULT 'active',
  -- Discriminated by `kind`; never a credential.
  repository jsonb NOT NULL,
  default_branch text NOT NULL,
  triggers_paused boolean NOT NULL DEFAULT false,
  -- Changes with every change of the project's secrets (PLATFORM_PROJECT_SECRETS_REVISION).
  secrets_revision integer NOT NULL DEFAULT 0,
  -- The highest number that a change request got.
  change_requests integer NOT NULL DEFAULT 0,
  -- accounts.drained_turns when a waiting fire of this project was last started; the lowest is next.
  drained_turn bigint NOT NULL DEFAULT 0,
  -- Sessions that a cron or webhook fire spawns act for this user.
  created_by uuid NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  changed_tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- The node that has the hosted repository. Null: none yet, or another kind of repository.
  node_id text,
  -- Which role the account's other people have in it. Null: none.
  default_role text,
  -- Which role may merge.
  merge_role text NOT NULL,
  CONSTRAINT projects_pkey PRIMARY KEY (id),
  CONSTRAINT projects_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT projects_created_by_fkey FOREIGN KEY (created_by) REFERENCES users (id),
  CONSTRAINT projects_status_known CHECK (status IN ('active', 'archived')),
  CONSTRAINT projects_default_role_known CHECK (default_role IN ('viewer', 'member')),
  CONSTRAINT projects_merge_role_known CHECK (merge_role IN ('member', 'owner'))
);

CREATE INDEX projects_account_idx ON projects (account_id, created_at DESC, id DESC);
CREATE INDEX projects_changed_idx ON projects (changed_tx);

CREATE TABLE project_members (
  project_id uuid NOT NULL,
  user_id uuid NOT NULL,
  role text NOT NULL,
  granted_at timestamptz NOT NULL,
  CONSTRAINT project_members_pkey PRIMARY KEY (project_id, user_id),
  CONSTRAINT project_members_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT project_members_user_fkey FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT project_members_role_known CHECK (role IN ('viewer', 'member', 'owner'))
);

CREATE INDEX project_members_user_idx ON project_members (user_id);

-- The manifest in the repository is the source of truth for triggers (spec 2.3). `text` and `commit_sha` are the last reading that
-- parsed. `error` is what was wrong with the newest one: the triggers of the last good reading continue to fire (api.md 4).
CREATE TABLE project_manifests (
  project_id uuid NOT NULL,
  -- The newest commit that was read, parsed or not.
  read_commit text,
  synced_at timestamptz NOT NULL,
  error text,
  commit_sha text,
  text text,
  -- Those of the triggers' agents that have a file in the commit of the last good reading. With them its text says everything, and no
  -- repository is asked when the service starts.
  agents text[] NOT NULL DEFAULT '{}',
  -- Where the error is, as far as it is known.
  error_path text,
  error_line integer,
  -- Whether the repository configures a model provider of its own at the last good reading. A fire of a project that has neither that
  -- nor a key nor the managed gateway fails with `no_model`. Null: not looked up yet; the project's fires start sessions.
  brings_model boolean,
  -- The Dockerfile of the last good reading, at its commit. Null: the project has none.
  environment jsonb,
  CONSTRAINT project_manifests_pkey PRIMARY KEY (project_id),
  CONSTRAINT project_manifests_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT project_manifests_good_reading_whole CHECK ((commit_sha IS NULL) = (text IS NULL))
);

-- Project secrets (api.md 5), bound to project, name and version. A removed secret keeps its row without an envelope, so that a version
-- never comes back under the same name.
-- While a signing secret is rotated, its previous value verifies webhooks until previous_until, and is never injected into a sandbox.
-- previous_envelope is the envelope of previous_version, moved here unchanged. It is removed after its time, by the next write of the
-- secret, and by its deletion.
CREATE TABLE project_secrets (
  project_id uuid NOT NULL,
  name text NOT NULL,
  version integer NOT NULL,
  envelope bytea,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  updated_by uuid,
  previous_envelope bytea,
  previous_version integer,
  previous_until timestamptz,
  CONSTRAINT project_secrets_pkey PRIMARY KEY (project_id, name),
  CONSTRAINT project_secrets_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT project_secrets_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES users (id),
  CONSTRAINT project_secrets_version_positive CHECK (version > 0),
  CONSTRAINT project_secrets_previous_whole CHECK (
    num_nonnulls(previous_envelope, previous_version, previous_until) IN (0, 3)
    AND (previous_envelope IS NULL OR envelope IS NOT NULL)
  )
);

CREATE INDEX project_secrets_previous_idx ON project_secrets (previous_until) WHERE previous_until IS NOT NULL;

-- The credential of a repository at another server (api.md 2), bound to the project. A project without a row is hosted here, or its
-- server asks for nothing.
CREATE TABLE project_credentials (
  project_id uuid NOT NULL,
  envelope bytea NOT NULL,
  CONSTRAINT project_credentials_pkey PRIMARY KEY (project_id),
  CONSTRAINT project_credentials_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

-- Tokens and cost of a project's agents, by day and model. A conversation's sums end with its session; these stay, because the money was
-- spent. Written in the transaction that writes the sandbox's report, under the conversation's lock.
CREATE TABLE project_usage (
  project_id uuid NOT NULL,
  -- In UTC, by the service's clock.
  day date NOT NULL,
  model text NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  -- US dollars.
  cost_usd numeric NOT NULL,
  CONSTRAINT project_usage_pkey PRIMARY KEY (project_id, day, model),
  CONSTRAINT project_usage_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Nodes: several services on one database (api.md 10). A single one has its row too
-- ---------------------------------------------------------------------------------------------------------------------------------

CREATE TABLE nodes (
  -- Made on a data directory's first start, and kept there.
  id text NOT NULL,
  -- Its API port, as the other nodes reach it. Null: it was not seen yet.
  url text,
  -- Rises with each sign of life. Others notice silence by it, each by its own clock: no clock is compared with another's.
  beats bigint NOT NULL,
  -- By its own clock: for people.
  last_seen_at timestamptz NOT NULL,
  -- Since when it counts as dead; its next sign of life ends that.
  dead_at timestamptz,
  CONSTRAINT nodes_pkey PRIMARY KEY (id)
);

-- The next two belong to Effect's cluster (its SqlRunnerStorage): the runners, and who holds which shard where advisory locks are off.
-- Instants are timestamptz here, so that they do not depend on a connection's time zone.
CREATE TABLE cluster_runners (
  machine_id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY,
  address text NOT NULL,
  runner text NOT NULL,
  healthy boolean NOT NULL DEFAULT true,
  last_heartbeat timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT cluster_runners_pkey PRIMARY KEY (machine_id),
  CONSTRAINT cluster_runners_address_key UNIQUE (address)
);

CREATE TABLE cluster_locks (
  shard_id text NOT NULL,
  address text NOT NULL,
  acquired_at timestamptz NOT NULL,
  CONSTRAINT cluster_locks_pkey PRIMARY KEY (shard_id)
);

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Environments: a project's Dockerfile, built into an image on the node that boots its sandboxes
-- ---------------------------------------------------------------------------------------------------------------------------------

-- One row a build, with its actor's memory (machines/environment-build.ts).
CREATE TABLE environment_builds (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  -- The build runs on this node, which has its image.
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
  -- Its base images with their digests at the build: [{"reference": …, "digest": …}]. A digest is null if the registry did not answer.
  bases jsonb NOT NULL DEFAULT '[]',
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

-- What the tags of base images stand for now (docs/decisions/0079-base-images.md). A build whose base image has changed is made again.
CREATE TABLE environment_bases (
  -- With registry and tag, e.g. images.example.com/team/tools:1.
  reference text NOT NULL,
  -- What the registry said last, and when. Null: it never answered.
  digest text,
  looked_up_at timestamptz,
  -- The last try, and how many tries failed since the last answer.
  tried_at timestamptz NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  problem text,
  -- The next try is not before.
  due_at timestamptz NOT NULL,
  CONSTRAINT environment_bases_pkey PRIMARY KEY (reference),
  CONSTRAINT environment_bases_answer_dated CHECK ((digest IS NULL) = (looked_up_at IS NULL)),
  CONSTRAINT environment_bases_problem_known CHECK ((problem IS NULL) = (failures = 0))
);

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Sessions (spec 2.1, 3.1) and their sandboxes (spec 2.2, 3.2)
-- ---------------------------------------------------------------------------------------------------------------------------------

-- The specification's seven values. queued, branching and completed are never written.
CREATE TYPE project_session_status AS ENUM (
  'queued', 'branching', 'provisioning', 'running', 'stopped', 'failed', 'completed'
);
-- A sandbox in one of the last three states is final.
CREATE TYPE session_sandbox_status AS ENUM ('provisioning', 'active', 'stopped', 'error', 'archived');

CREATE TABLE project_sessions (
  -- Also the name of the session branch.
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  account_id uuid NOT NULL,
  status project_session_status NOT NULL,
  version integer NOT NULL DEFAULT 1,
  state_context jsonb NOT NULL,
  base_ref text NOT NULL,
  base_commit text,
  name text,
  agent_name text NOT NULL,
  agent_model text,
  initial_prompt text,
  metadata jsonb NOT NULL,
  trigger_slug text,
  fire_id uuid,
  created_by uuid NOT NULL,
  -- The rights of the token in its sandbox follow from it (api.md 1 "Origin").
  origin text NOT NULL,
  failure jsonb,
  failed_at timestamptz,
  -- user_deactivated: the sessions of a deactivated person are saved and stopped.
  stop_reason text,
  -- When it last entered provisioning, and until when it must be running.
  provisioned_at timestamptz NOT NULL,
  boot_deadline_at timestamptz NOT NULL,
  bootstrap_accepted_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  running_at timestamptz,
  stopped_at timestamptz,
  deleted_at timestamptz,
  -- The last save of its work, when its sandbox was torn down: the commit on refs/wip/<session id> and the files that are not in it, or
  -- why the save failed.
  saved jsonb,
  -- How its last turn ended: its state, the error if there was one, and when, with the sandbox and the turn's number there, so that a
  -- report that comes twice is written once. Null until a turn has ended.
  last_turn jsonb,
  -- The session of the same project whose agent started this one. Null: a person or a trigger did.
  parent_session_id uuid,
  -- Whether a restart was asked to bring the saved work back, and what the new sandbox answered.
  restore_saved boolean NOT NULL DEFAULT false,
  restored jsonb,
  CONSTRAINT project_sessions_pkey PRIMARY KEY (id),
  CONSTRAINT project_sessions_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT project_sessions_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT project_sessions_created_by_fkey FOREIGN KEY (created_by) REFERENCES users (id),
  CONSTRAINT project_sessions_parent_fkey FOREIGN KEY (parent_session_id) REFERENCES project_sessions (id),
  CONSTRAINT project_sessions_status_written CHECK (status NOT IN ('queued', 'branching', 'completed')),
  CONSTRAINT project_sessions_origin_known CHECK (origin IN ('session', 'trigger')),
  CONSTRAINT project_sessions_stop_reason_known
    CHECK (stop_reason IN ('requested', 'idle', 'deleted', 'user_deactivated')),
  CONSTRAINT project_sessions_failure_dated CHECK ((failure IS NULL) = (failed_at IS NULL)),
  CONSTRAINT project_sessions_failed_has_reason CHECK (status <> 'failed' OR failure IS NOT NULL)
);

CREATE INDEX project_sessions_list_idx ON project_sessions (project_id, created_at DESC, id DESC)
  WHERE deleted_at IS NULL;
-- The sessions of all projects of an account, newest first (api.md 3): the dashboard's first page, and its search.
CREATE INDEX project_sessions_account_idx ON project_sessions (account_id, created_at DESC, id DESC)
  WHERE deleted_at IS NULL;
CREATE INDEX project_sessions_live_idx ON project_sessions (account_id) WHERE status IN ('provisioning', 'running');
CREATE INDEX project_sessions_parent_idx ON project_sessions (parent_session_id, created_at DESC, id DESC)
  WHERE parent_session_id IS NOT NULL;
-- A fire starts one session (threats.md I2).
CREATE UNIQUE INDEX project_sessions_fire_key ON project_sessions (fire_id);

-- One row a boot.
CREATE TABLE session_sandboxes (
  id uuid NOT NULL,
  session_id uuid NOT NULL,
  provider text NOT NULL,
  node_id text NOT NULL,
  status session_sandbox_status NOT NULL,
  version integer NOT NULL DEFAULT 1,
  state_context jsonb NOT NULL,
  failure jsonb,
  boot_deadline_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL,
  active_at timestamptz,
  ended_at timestamptz,
  -- Which secrets it was last given: the revision, and the version of each secret by its name; no value. A changed secret is sent to the
  -- running sessions (api.md 5): whatever differs from the project's set is sent, so that a crash between a change and its delivery
  -- loses nothing. Null: not known, and nothing is sent.
  secrets_revision integer,
  secret_versions jsonb,
  -- When it got its place among the boots of its node (PLATFORM_BOOTS_AT_ONCE). From then on its deadline counts (api.md 3). Null: it
  -- waits.
  boot_started_at timestamptz,
  -- The image whose file system it sees, if its project names one (api.md 3).
  image text,
  -- The build whose image it sees, or waits for, and whether a newer one was wanted.
  environment_build_id uuid,
  environment_is_stale boolean NOT NULL DEFAULT false,
  -- Of a sandbox that waited for its session. Null: it was started for it.
  warm_recipe text,
  CONSTRAINT session_sandboxes_pkey PRIMARY KEY (id),
  CONSTRAINT session_sandboxes_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT session_sandboxes_environment_build_fkey FOREIGN KEY (environment_build_id)
    REFERENCES environment_builds (id) ON DELETE SET NULL,
  CONSTRAINT session_sandboxes_error_has_reason CHECK (status <> 'error' OR failure IS NOT NULL),
  CONSTRAINT session_sandboxes_end_dated CHECK ((status IN ('provisioning', 'active')) = (ended_at IS NULL)),
  CONSTRAINT session_sandboxes_secrets_whole CHECK ((secrets_revision IS NULL) = (secret_versions IS NULL))
);

CREATE INDEX session_sandboxes_session_idx ON session_sandboxes (session_id, created_at DESC, id DESC);
-- At most one live sandbox a session (api.md 3, threats.md I10).
CREATE UNIQUE INDEX session_sandboxes_live_key ON session_sandboxes (session_id)
  WHERE status IN ('provisioning', 'active');
CREATE INDEX session_sandboxes_environment_build_idx ON session_sandboxes (environment_build_id)
  WHERE environment_build_id IS NOT NULL;

-- Sandboxes that are started before a session needs them (docs/decisions/0073-warm-sandboxes.md). A row is older than its sandbox, so that
-- a crash leaves no sandbox without one. The row goes when the session's own record of the sandbox is written.
CREATE TABLE warm_sandboxes (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  node_id text NOT NULL,
  -- A digest of everything that the sandbox was started with. Null: it is not ready yet.
  recipe text,
  -- The project's secrets that it was started with, as in session_sandboxes.
  secrets_revision integer,
  secret_versions jsonb,
  -- Null: the project's manifest asks for it. Otherwise a person is about to start a session, or a cron trigger fires soon.
  wanted_until timestamptz,
  created_at timestamptz NOT NULL,
  -- The session that gets it. Null: none yet.
  session_id uuid,
  claimed_at timestamptz,
  -- Who it waits for: this decides who may take it, and which one goes first if there is no room.
  wanted_by text NOT NULL,
  CONSTRAINT warm_sandboxes_pkey PRIMARY KEY (id),
  CONSTRAINT warm_sandboxes_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT warm_sandboxes_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id) ON DELETE CASCADE,
  CONSTRAINT warm_sandboxes_session_unique UNIQUE (session_id),
  CONSTRAINT warm_sandboxes_ready_whole CHECK (num_nonnulls(recipe, secrets_revision, secret_versions) IN (0, 3)),
  CONSTRAINT warm_sandboxes_claim_whole CHECK (num_nonnulls(session_id, claimed_at) IN (0, 2)),
  CONSTRAINT warm_sandboxes_claimed_ready CHECK (session_id IS NULL OR recipe IS NOT NULL),
  CONSTRAINT warm_sandboxes_wanted_by_check CHECK (wanted_by IN ('manifest', 'person', 'trigger')),
  CONSTRAINT warm_sandboxes_wanted_whole CHECK ((wanted_by = 'manifest') = (wanted_until IS NULL))
);

CREATE INDEX warm_sandboxes_project_idx ON warm_sandboxes (project_id);
CREATE INDEX warm_sandboxes_node_idx ON warm_sandboxes (node_id);

-- The logs of a session's sandboxes, kept after their end (api.md 3): one row a boot, the newest 1 MiB of a session over all its boots.
-- Written before a sandbox is destroyed, removed with the session.
CREATE TABLE session_logs (
  sandbox_id uuid NOT NULL,
  session_id uuid NOT NULL,
  -- UTF-8, as the sandbox wrote it: whole lines.
  text bytea NOT NULL,
  kept_at timestamptz NOT NULL,
  CONSTRAINT session_logs_pkey PRIMARY KEY (sandbox_id),
  CONSTRAINT session_logs_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes (id),
  CONSTRAINT session_logs_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT session_logs_bounded CHECK (octet_length(text) <= 1048576)
);

CREATE INDEX session_logs_session_idx ON session_logs (session_id);

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Tokens, browsers and other ways in. Only SHA-256 hashes are stored
-- ---------------------------------------------------------------------------------------------------------------------------------

-- Tokens of people, browsers that are signed in, and the two tokens of each sandbox. A sandbox's tokens and passwords are never revoked
-- one by one: every look-up joins the session and the sandbox, and what has ended opens nothing (threats.md T03, G10).
-- A browser's session is a token of the kind 'browser', so that every node knows it, a restart keeps it, and a person can end each of
-- hers. It ends with the token that opened it, or with the identity that began it, and its expiry moves while it is used.
-- Operators: to shut out a leaked token immediately, set its revoked_at.
CREATE TABLE tokens (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  user_id uuid NOT NULL,
  -- Bound to this project. Null: the whole account.
  project_id uuid,
  -- The sandbox that carries it. Null: a token that someone made.
  session_id uuid,
  sandbox_id uuid,
  -- 'sandbox': a PLATFORM_TOKEN, good for the clone credential alone (spec 5.2).
  kind text NOT NULL,
  origin text NOT NULL,
  name text NOT NULL,
  hash text NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  opened_by uuid,
  address text,
  user_agent text,
  identity_id uuid,
  CONSTRAINT tokens_pkey PRIMARY KEY (id),
  CONSTRAINT tokens_hash_key UNIQUE (hash),
  CONSTRAINT tokens_account_fkey FOREIGN KEY (account_id) REFERENCES accounts (id),
  CONSTRAINT tokens_user_fkey FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT tokens_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT tokens_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT tokens_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes (id),
  CONSTRAINT tokens_opened_by_fkey FOREIGN KEY (opened_by) REFERENCES tokens (id),
  CONSTRAINT tokens_identity_fkey FOREIGN KEY (identity_id) REFERENCES identities (id),
  CONSTRAINT tokens_kind_known CHECK (kind IN ('access', 'sandbox', 'browser')),
  CONSTRAINT tokens_origin_known CHECK (origin IN ('user', 'session', 'trigger')),
  CONSTRAINT tokens_sandbox_whole CHECK ((session_id IS NULL) = (sandbox_id IS NULL)),
  CONSTRAINT tokens_sandbox_bound CHECK (sandbox_id IS NULL OR project_id IS NOT NULL),
  CONSTRAINT tokens_browser_whole CHECK (
    CASE WHEN kind = 'browser' THEN origin = 'user' AND sandbox_id IS NULL AND expires_at IS NOT NULL
      AND (opened_by IS NULL) <> (identity_id IS NULL)
    ELSE opened_by IS NULL AND identity_id IS NULL AND address IS NULL AND user_agent IS NULL END
  )
);

CREATE INDEX tokens_account_idx ON tokens (account_id, created_at DESC, id DESC)
  WHERE sandbox_id IS NULL AND revoked_at IS NULL;
CREATE INDEX tokens_browser_idx ON tokens (user_id, created_at DESC, id DESC) WHERE kind = 'browser';
-- The foreign key looks for the browsers of a token that is deleted.
CREATE INDEX tokens_opened_by_idx ON tokens (opened_by) WHERE opened_by IS NOT NULL;
-- For the removal of an identity, with the sessions that it began.
CREATE INDEX tokens_identity_idx ON tokens (identity_id) WHERE identity_id IS NOT NULL;

-- One-time links. They are rows, so that any node opens them.
CREATE TABLE sign_in_links (
  hash text NOT NULL,
  token_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT sign_in_links_pkey PRIMARY KEY (hash),
  CONSTRAINT sign_in_links_token_fkey FOREIGN KEY (token_id) REFERENCES tokens (id) ON DELETE CASCADE
);

CREATE INDEX sign_in_links_token_idx ON sign_in_links (token_id, created_at DESC, hash);

-- Programs without a browser that wait for a person to sign them in (RFC 8628).
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

-- The passwords minted for a sandbox's git.
CREATE TABLE clone_credentials (
  hash text NOT NULL,
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  sandbox_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT clone_credentials_pkey PRIMARY KEY (hash),
  CONSTRAINT clone_credentials_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT clone_credentials_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT clone_credentials_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes (id)
);

CREATE INDEX clone_credentials_sandbox_idx ON clone_credentials (sandbox_id, expires_at);

-- A browser's way to a port inside a sandbox (api.md 3). A row has the hash of one secret: the link's until it is opened, then the
-- cookie's, so that no link can be opened twice. It ends with its instant, with the token that made it, and with its sandbox.
CREATE TABLE previews (
  hash text NOT NULL,
  token_id uuid NOT NULL,
  session_id uuid NOT NULL,
  sandbox_id uuid NOT NULL,
  port integer NOT NULL,
  created_at timestamptz NOT NULL,
  -- The link's end, then the cookie's.
  expires_at timestamptz NOT NULL,
  opened_at timestamptz,
  CONSTRAINT previews_pkey PRIMARY KEY (hash),
  CONSTRAINT previews_token_fkey FOREIGN KEY (token_id) REFERENCES tokens (id) ON DELETE CASCADE,
  CONSTRAINT previews_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id) ON DELETE CASCADE,
  CONSTRAINT previews_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes (id) ON DELETE CASCADE,
  CONSTRAINT previews_port_known CHECK (port BETWEEN 1 AND 65535)
);

CREATE INDEX previews_session_idx ON previews (session_id, created_at DESC, hash);
CREATE INDEX previews_expiry_idx ON previews (expires_at);

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Triggers: the only state outside the manifest, the ledger of fires, and the queue (api.md 4 "Ledger", "Queue")
-- ---------------------------------------------------------------------------------------------------------------------------------

CREATE TABLE project_trigger_runtime (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  last_fired_at timestamptz NOT NULL,
  CONSTRAINT project_trigger_runtime_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT project_trigger_runtime_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

-- Up to which instant every due instant of a cron trigger has its row in the ledger. A row belongs to one schedule (expression and zone):
-- a trigger that is new, changed, enabled or back in an active project starts counting at that moment, with a new row.
CREATE TABLE trigger_cursors (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  schedule text NOT NULL,
  accounted_until timestamptz NOT NULL,
  CONSTRAINT trigger_cursors_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT trigger_cursors_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

-- Every due cron instant and every authentic webhook leaves exactly one row of another status than 'duplicate'. The two unique indexes
-- are what that rests on. Index entries and foreign-key checks are most of what the commit of a webhook costs the database
-- (`npm run bench:webhook`), so this table and the next two have few: an account is the one of its project, and rows of the queue are
-- written and removed with what they refer to, under the account's lock.
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
  -- This row answers for its delivery id. False when a later delivery took its place after the 24 h.
  answers_delivery boolean NOT NULL,
  session_id uuid,
  attempts integer NOT NULL,
  replay_of uuid,
  -- When its session was made. The newest of a trigger is its last_fired_at.
  fired_at timestamptz,
  -- Which of the two values of a signing secret verified a webhook.
  verified_with text,
  -- The fire's session, or its last turn, failed. Written with the session, only when it changes, so that the list of failed runs needs
  -- no look at the sessions.
  session_failed boolean NOT NULL DEFAULT false,
  CONSTRAINT fires_pkey PRIMARY KEY (id),
  CONSTRAINT fires_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT fires_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT fires_kind_known CHECK (kind IN ('cron', 'webhook', 'manual')),
  CONSTRAINT fires_status_known CHECK (
    status IN ('queued', 'fired', 'failed', 'skipped', 'expired', 'cancelled', 'duplicate')
  ),
  CONSTRAINT fires_cron_has_instant CHECK (kind <> 'cron' OR scheduled_for IS NOT NULL),
  CONSTRAINT fires_fired_has_session CHECK (
    (status = 'fired') = (session_id IS NOT NULL) AND (status = 'fired') = (fired_at IS NOT NULL)
  ),
  CONSTRAINT fires_verified_with_known CHECK (verified_with IN ('current', 'previous'))
);

-- The delivery id first: it alone is nearly unique.
CREATE UNIQUE INDEX fires_delivery_key ON fires (delivery_id, project_id, trigger_slug) WHERE answers_delivery;
CREATE UNIQUE INDEX fires_instant_key ON fires (project_id, trigger_slug, scheduled_for)
  WHERE kind = 'cron' AND replay_of IS NULL AND status <> 'duplicate';
-- Rows come in the order of these two, so that a rising index takes them at its end. Read backwards it serves as well.
CREATE INDEX fires_project_idx ON fires (project_id, received_at, id);
CREATE INDEX fires_trigger_idx ON fires (project_id, trigger_slug, received_at, id);
-- For pruning: instants rise with the rows' places, so ranges of blocks say enough.
CREATE INDEX fires_received_idx ON fires USING brin (received_at);
-- What neither fired nor waits. Most rows fired, and what waits is in the queue.
CREATE INDEX fires_ended_idx ON fires (project_id, status, received_at, id)
  WHERE status NOT IN ('fired', 'queued');
CREATE INDEX fires_failed_idx ON fires (project_id, received_at, id) WHERE status = 'failed' OR session_failed;
CREATE INDEX fires_failed_trigger_idx ON fires (project_id, trigger_slug, received_at, id)
  WHERE status = 'failed' OR session_failed;

-- What a fire came with, for looking at it and for firing it again: the body of a webhook or of a fire by hand, and the three headers
-- that templates know. 2 GiB an account; the oldest go first, and a fire's go with its row.
CREATE TABLE fire_requests (
  fire_id uuid NOT NULL,
  account_id uuid NOT NULL,
  body bytea NOT NULL,
  -- How the body is stored: `identity`, or `deflate` (RFC 1951) if that is smaller.
  encoding text NOT NULL,
  -- content_type, user_agent and forwarded_for of a webhook. Null for a fire by hand.
  headers jsonb,
  -- Ids rise with time: this is also the order in which an account's rows are pruned.
  CONSTRAINT fire_requests_pkey PRIMARY KEY (account_id, fire_id),
  CONSTRAINT fire_requests_encoding_known CHECK (encoding IN ('identity', 'deflate'))
);

-- What a waiting fire needs to become a session. A webhook's prompt is rendered when the fire arrives, so `session` is the finished draft.
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
  -- Of a cron fire: it is rendered when it fires, because its prompt names the fire before it.
  template jsonb,
  CONSTRAINT fire_queue_pkey PRIMARY KEY (fire_id)
);

CREATE INDEX fire_queue_account_idx ON fire_queue (account_id, project_id, arrival);
-- A cron trigger has at most one waiting fire.
CREATE UNIQUE INDEX fire_queue_cron_key ON fire_queue (project_id, trigger_slug) WHERE kind = 'cron';
CREATE INDEX fire_queue_expiry_idx ON fire_queue (expires_at);

-- What the webhook receiver refused, for the people of the project: a sender only learns a status. Neither bodies nor signatures are
-- stored. The newest 500 rows of a project stay, for 7 days. Rows are gathered in memory and written in batches, and a flood is cut off
-- there, so there may be fewer rows than refusals.
CREATE TABLE webhook_refusals (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  at timestamptz NOT NULL,
  -- As the sender wrote it, cut: it need not be a trigger's.
  slug text NOT NULL,
  status integer NOT NULL,
  -- The code of the answer, and the reason that the sender does not get.
  code text NOT NULL,
  reason text NOT NULL,
  delivery_id text,
  event text,
  -- By Content-Length, and received. Null: nothing was read.
  declared_bytes bigint,
  body_bytes bigint,
  -- Of the connection, and what X-Forwarded-For said.
  address text NOT NULL,
  forwarded_for text,
  CONSTRAINT webhook_refusals_pkey PRIMARY KEY (id),
  CONSTRAINT webhook_refusals_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE INDEX webhook_refusals_project_idx ON webhook_refusals (project_id, at DESC, id DESC);
CREATE INDEX webhook_refusals_at_idx ON webhook_refusals (at);

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Conversations: a session's items, the whole output of its tools, and attached files. They outlive sandboxes and end with the session
-- ---------------------------------------------------------------------------------------------------------------------------------

-- `seq` counts the versions of a conversation's items and of its turn, from 1, without gaps. A writer takes the next numbers under the
-- lock of the conversation's row. A reader that has everything up to a number reads the rows above it.
CREATE TABLE conversations (
  session_id uuid NOT NULL,
  -- The state machine's snapshot.
  state text NOT NULL DEFAULT 'idle',
  state_context jsonb NOT NULL DEFAULT '{}',
  version integer NOT NULL DEFAULT 1,
  -- The last number that was taken.
  seq integer NOT NULL DEFAULT 0,
  -- The sandbox whose report was written last, and up to which of its numbers.
  sandbox_id uuid,
  sandbox_rev bigint,
  -- The agent's turn, as the sandbox said last. turn_seq: the number of the last change of turn or usage.
  turn_state text NOT NULL DEFAULT 'idle',
  turn_since timestamptz NOT NULL,
  turn_waiting_for uuid,
  turn_seq integer NOT NULL DEFAULT 0,
  -- Sums over all items.
  usage jsonb NOT NULL DEFAULT '{"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": 0}',
  -- The size of all items, outputs and attachments.
  bytes bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  -- A turn whose end is noted while the conversation still continues. The event session.turn_ended follows when the agent rests. Null:
  -- no turn waits.
  turn_to_tell jsonb,
  CONSTRAINT conversations_pkey PRIMARY KEY (session_id),
  CONSTRAINT conversations_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id) ON DELETE CASCADE,
  CONSTRAINT conversations_state_known CHECK (state IN ('idle', 'sending', 'running', 'requires_action')),
  CONSTRAINT conversations_turn_state_known CHECK (turn_state IN ('idle', 'running', 'requires_action')),
  CONSTRAINT conversations_sandbox_whole CHECK ((sandbox_id IS NULL) = (sandbox_rev IS NULL))
);

CREATE TABLE conversation_items (
  session_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The number of its last version.
  seq integer NOT NULL,
  -- Its place in the conversation: the number of its first version, or of the one in which the agent accepted a message.
  place integer NOT NULL,
  -- The runtime's own id, the sandbox that reported it last, and the report's number. Null for a message that was not sent.
  native_id text,
  sandbox_id uuid,
  rev bigint NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  record jsonb NOT NULL,
  -- The size of the record.
  bytes integer NOT NULL,
  CONSTRAINT conversation_items_pkey PRIMARY KEY (session_id, id),
  CONSTRAINT conversation_items_seq_key UNIQUE (session_id, seq),
  CONSTRAINT conversation_items_place_key UNIQUE (session_id, place),
  CONSTRAINT conversation_items_native_key UNIQUE (session_id, native_id),
  CONSTRAINT conversation_items_conversation_fkey FOREIGN KEY (session_id) REFERENCES conversations (session_id)
    ON DELETE CASCADE,
  CONSTRAINT conversation_items_kind_known CHECK (kind IN ('message', 'thought', 'tool', 'plan', 'request', 'note')),
  CONSTRAINT conversation_items_status_known CHECK (status IN (
    'queued', 'sending', 'accepted', 'cancelled', 'pending', 'running', 'completed', 'failed', 'interrupted', 'lost'
  ))
);

-- The queue, open requests, and the items that an ended sandbox left open.
CREATE INDEX conversation_items_open_idx ON conversation_items (session_id, place)
  WHERE status IN ('queued', 'sending', 'pending', 'running');

CREATE TABLE conversation_outputs (
  session_id uuid NOT NULL,
  item_id uuid NOT NULL,
  text text NOT NULL,
  bytes integer NOT NULL,
  CONSTRAINT conversation_outputs_pkey PRIMARY KEY (session_id, item_id),
  CONSTRAINT conversation_outputs_item_fkey FOREIGN KEY (session_id, item_id) REFERENCES conversation_items (session_id, id)
    ON DELETE CASCADE,
  CONSTRAINT conversation_outputs_bounded CHECK (octet_length(text) <= 1048576)
);

CREATE TABLE conversation_attachments (
  session_id uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  media_type text NOT NULL,
  sha256 text NOT NULL,
  content bytea NOT NULL,
  created_at timestamptz NOT NULL,
  -- When it is removed, since the message for which a person attached it may never come. Null: a message has it.
  expires_at timestamptz,
  CONSTRAINT conversation_attachments_pkey PRIMARY KEY (session_id, id),
  CONSTRAINT conversation_attachments_conversation_fkey FOREIGN KEY (session_id) REFERENCES conversations (session_id)
    ON DELETE CASCADE,
  CONSTRAINT conversation_attachments_bounded CHECK (octet_length(content) <= 10485760)
);

CREATE INDEX conversation_attachments_expiring_idx ON conversation_attachments (expires_at)
  WHERE expires_at IS NOT NULL;

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Change requests (api.md 6): the only way of a session's work to the default branch (spec 1)
-- ---------------------------------------------------------------------------------------------------------------------------------

-- `state` is the machine's (machines/change-request.ts). It differs from `status`, which clients see, while a merge is under way.
--
-- base_commit and head_commit are written before git is asked: a service that dies between git's merge and the row finds by them that
-- the work in the default branch is its own. Of a merged request they say what was merged, so that it still shows its changes when the
-- branches have moved. merged_commit is the base branch's commit that has the work: the merge's own, or, if the row was written later,
-- the tip of that moment. A merge that a crash interrupts is finished by the service.
CREATE TABLE change_requests (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  -- From 1 in each project, out of projects.change_requests.
  number integer NOT NULL,
  session_id uuid,
  head_ref text NOT NULL,
  base_ref text NOT NULL,
  title text NOT NULL,
  description text NOT NULL,
  status text NOT NULL,
  created_by uuid,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  base_commit text,
  head_commit text,
  merged_commit text,
  merged_at timestamptz,
  -- Null of a merged request: it was merged at the code host, or a crash took the name of the user.
  merged_by uuid,
  -- The tips of the two branches in the last event about them. Branches move outside the database, by pushes and merges. A look
  -- compares them with these columns, and writes both and the event in one transaction: if a service dies before it announces a move,
  -- the next look announces it. Null: the branch was gone, or was not looked at yet.
  base_tip text,
  head_tip text,
  -- The pull request that a code host shows beside it (api.md 2, `pull_requests`). pull_status is `wanted` before the host is asked to
  -- open one: a service that dies between the host's pull request and the row looks for it there. After that it is what the host said
  -- last.
  pull_number integer,
  pull_url text,
  pull_status text,
  state text NOT NULL,
  state_context jsonb NOT NULL,
  version integer NOT NULL DEFAULT 1,
  CONSTRAINT change_requests_pkey PRIMARY KEY (id),
  CONSTRAINT change_requests_number_key UNIQUE (project_id, number),
  CONSTRAINT change_requests_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id),
  CONSTRAINT change_requests_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions (id),
  CONSTRAINT change_requests_created_by_fkey FOREIGN KEY (created_by) REFERENCES users (id),
  CONSTRAINT change_requests_merged_by_fkey FOREIGN KEY (merged_by) REFERENCES users (id),
  CONSTRAINT change_requests_status_known CHECK (status IN ('open', 'merged', 'closed')),
  CONSTRAINT change_requests_state_known CHECK (
    state = status OR state = 'merging' AND status IN ('open', 'closed')
  ),
  CONSTRAINT change_requests_sides_whole CHECK (num_nonnulls(base_commit, head_commit) IN (0, 2)),
  CONSTRAINT change_requests_merge_whole CHECK (
    num_nonnulls(head_commit, merged_commit, merged_at) = 3 AND status = 'merged'
    OR num_nonnulls(merged_commit, merged_at, merged_by) = 0 AND status <> 'merged'
  ),
  CONSTRAINT change_requests_pull_whole CHECK (
    pull_status IS NULL AND num_nonnulls(pull_number, pull_url) = 0
    OR pull_status = 'wanted' AND num_nonnulls(pull_number, pull_url) = 0
    OR pull_status IN ('open', 'merged', 'closed') AND num_nonnulls(pull_number, pull_url) = 2
  )
);

CREATE UNIQUE INDEX change_requests_open_head_key ON change_requests (project_id, head_ref) WHERE status = 'open';
CREATE INDEX change_requests_list_idx ON change_requests (project_id, created_at DESC, id DESC);
CREATE INDEX change_requests_pulls_idx ON change_requests (project_id, number)
  WHERE status = 'open' OR pull_status IN ('wanted', 'open');

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Connectors: the remote servers whose tools agents use through the service (manifest, [[connectors]])
-- ---------------------------------------------------------------------------------------------------------------------------------

-- Credentials and grants are bound to project, slug, origin and version (grants also to their kind): a row whose connector moves to
-- another origin does not open. A removed one keeps its row without an envelope, so that a version never comes back. One without a person
-- is the project's. One with a person (credential = "user") is sealed with her id, only her sessions use it, and it is removed when she
-- is deactivated.
CREATE TABLE connector_credentials (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  version integer NOT NULL,
  origin text NOT NULL,
  envelope bytea,
  updated_at timestamptz NOT NULL,
  updated_by uuid,
  -- A value that is sent to the server, or the client of a server with OAuth.
  kind text NOT NULL DEFAULT 'value',
  person_id uuid,
  CONSTRAINT connector_credentials_key UNIQUE NULLS NOT DISTINCT (project_id, slug, person_id),
  CONSTRAINT connector_credentials_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT connector_credentials_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES users (id),
  CONSTRAINT connector_credentials_person_fkey FOREIGN KEY (person_id) REFERENCES users (id),
  CONSTRAINT connector_credentials_version_positive CHECK (version > 0),
  CONSTRAINT connector_credentials_kind_known CHECK (kind IN ('value', 'oauth', 'client_credentials'))
);

CREATE INDEX connector_credentials_person_idx ON connector_credentials (person_id) WHERE person_id IS NOT NULL;

-- The tokens of connectors whose auth is oauth or client_credentials. One node at a time renews them: it holds the lease of the row, and
-- writes the new tokens as the next version before it uses them.
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
  -- Why it is refused, or why the last attempt to renew it failed.
  failure text,
  failed_at timestamptz,
  lease_holder uuid,
  lease_until timestamptz,
  person_id uuid,
  CONSTRAINT connector_grants_key UNIQUE NULLS NOT DISTINCT (project_id, slug, person_id),
  CONSTRAINT connector_grants_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT connector_grants_granted_by_fkey FOREIGN KEY (granted_by) REFERENCES users (id),
  CONSTRAINT connector_grants_person_fkey FOREIGN KEY (person_id) REFERENCES users (id),
  CONSTRAINT connector_grants_version_positive CHECK (version > 0),
  CONSTRAINT connector_grants_kind_known CHECK (kind IN ('oauth', 'client_credentials')),
  CONSTRAINT connector_grants_status_known CHECK (status IN ('empty', 'held', 'refused', 'removed')),
  CONSTRAINT connector_grants_held_whole CHECK ((status = 'held') = (envelope IS NOT NULL)),
  CONSTRAINT connector_grants_refused_whole CHECK (status <> 'refused' OR failure IS NOT NULL),
  CONSTRAINT connector_grants_failure_whole CHECK (num_nonnulls(failure, failed_at) IN (0, 2)),
  CONSTRAINT connector_grants_lease_whole CHECK (num_nonnulls(lease_holder, lease_until) IN (0, 2))
);

CREATE INDEX connector_grants_person_idx ON connector_grants (person_id) WHERE person_id IS NOT NULL;

-- Sign-ins that people began in the last ten minutes. A row is bound to its person, then to the browser in which she opened the address,
-- and is removed by its first callback.
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
  -- Whether its tokens will be hers or the project's. It is stored here, so that a change of the manifest during the sign-in cannot make
  -- hers the project's.
  is_own boolean NOT NULL,
  CONSTRAINT connector_flows_pkey PRIMARY KEY (project_id, slug, user_id),
  CONSTRAINT connector_flows_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT connector_flows_user_fkey FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT connector_flows_ticket_unique UNIQUE (ticket_hash),
  CONSTRAINT connector_flows_state_unique UNIQUE (state_hash)
);

CREATE INDEX connector_flows_expires_idx ON connector_flows (expires_at);

-- The tools of a server, as a person accepted them and as they were last seen. The texts are JSON, but not jsonb, which cannot hold every
-- text.
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

-- The record of calls: a row is written before a call, and its outcome after it.
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
  -- Null: the call is being performed. pending: it waits for a person.
  outcome text,
  -- Why, if the outcome is not ok.
  message text,
  upstream_status integer,
  result_bytes integer,
  -- When an approved call was sent. Null: at the instant `at`, or not at all.
  begun_at timestamptz,
  -- The person who approved or denied it.
  approver_id uuid,
  CONSTRAINT executor_calls_pkey PRIMARY KEY (id),
  CONSTRAINT executor_calls_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT executor_calls_approver_fkey FOREIGN KEY (approver_id) REFERENCES users (id),
  CONSTRAINT executor_calls_started_by_known CHECK (started_by IN ('user', 'trigger')),
  CONSTRAINT executor_calls_outcome_known CHECK (outcome IN ('ok', 'error', 'denied', 'pending', 'unknown')),
  CONSTRAINT executor_calls_ended_whole CHECK ((ended_at IS NULL) = (outcome IS NULL OR outcome = 'pending'))
);

CREATE INDEX executor_calls_project_idx ON executor_calls (project_id, at DESC, id DESC);
CREATE INDEX executor_calls_connector_idx ON executor_calls (project_id, connector, at);
CREATE INDEX executor_calls_begun_idx ON executor_calls (project_id, connector, begun_at) WHERE begun_at IS NOT NULL;
CREATE INDEX executor_calls_open_idx ON executor_calls (session_id, at) WHERE outcome IS NULL;
-- A session's record has the number of its calls that wait for a person, and lists find the sessions that have some.
CREATE INDEX executor_calls_waiting_idx ON executor_calls (session_id) WHERE outcome = 'pending';
CREATE INDEX executor_calls_at_idx ON executor_calls (at);

-- Room for one more call of a connector: the lock and the counts in one function, so that a call's row costs one statement. If a call held
-- the lock of its project over several statements, many calls at a time would wait for each other.
CREATE FUNCTION executor_room(
  wanted_project uuid,
  wanted_connector text,
  -- Null: the session's calls are not counted.
  wanted_session uuid,
  rows_since timestamptz,
  rows_max integer,
  open_since timestamptz,
  open_max integer
) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  -- Calls of one project wait for each other here, so that two cannot take the last place.
  PERFORM pg_advisory_xact_lock(hashtextextended('executor ' || wanted_project::text, 0));
  -- A volatile function sees in each of its statements what was committed before that statement: here, the rows of earlier holders.
  -- A call that waits for a person counts once it is sent or settled.
  IF rows_max <= (
    SELECT count(*) FROM executor_calls
    WHERE project_id = wanted_project AND connector = wanted_connector AND outcome IS DISTINCT FROM 'pending'
      AND (at > rows_since OR begun_at > rows_since)
  ) THEN RETURN 'connector_busy';
  END IF;
  IF wanted_session IS NOT NULL AND open_max <= (
    SELECT count(*) FROM executor_calls
    WHERE session_id = wanted_session AND outcome IS NULL AND coalesce(begun_at, at) > open_since
  ) THEN RETURN 'session_busy';
  END IF;
  RETURN 'free';
END;
$$;

-- A call whose policy is `ask` has a row here. Arguments and result are bound to the approval's id. The arguments are removed when the call
-- is settled, the result a day after the agent got it.
CREATE TABLE approvals (
  -- The id of the call.
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  status text NOT NULL,
  arguments_envelope bytea,
  result_envelope bytea,
  -- Why it is denied, refused or unknown.
  message text,
  asked_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  decided_by uuid,
  decided_at timestamptz,
  -- The last change of status: it says how long a call is under way.
  moved_at timestamptz NOT NULL,
  -- A lease of the caller that waits for the result. After it the result becomes a message.
  attended_until timestamptz NOT NULL,
  delivered_at timestamptz,
  CONSTRAINT approvals_pkey PRIMARY KEY (id),
  CONSTRAINT approvals_call_fkey FOREIGN KEY (id) REFERENCES executor_calls (id) ON DELETE CASCADE,
  CONSTRAINT approvals_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT approvals_decided_by_fkey FOREIGN KEY (decided_by) REFERENCES users (id),
  CONSTRAINT approvals_status_known CHECK (
    status IN ('pending', 'approved', 'calling', 'done', 'denied', 'refused', 'expired', 'unknown')
  ),
  CONSTRAINT approvals_decided_whole CHECK (num_nonnulls(decided_by, decided_at) IN (0, 2)),
  CONSTRAINT approvals_called_by_a_person CHECK (status IN ('pending', 'expired') OR decided_by IS NOT NULL),
  CONSTRAINT approvals_arguments_kept CHECK (
    (status IN ('pending', 'approved', 'calling')) = (arguments_envelope IS NOT NULL)
  )
);

CREATE INDEX approvals_project_idx ON approvals (project_id, asked_at DESC, id DESC);
CREATE INDEX approvals_open_idx ON approvals (moved_at) WHERE delivered_at IS NULL;
CREATE INDEX approvals_result_idx ON approvals (delivered_at) WHERE result_envelope IS NOT NULL;

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Events, for live readers (api.md 1 "Live data") and for receivers outside
-- ---------------------------------------------------------------------------------------------------------------------------------

-- Written in the state's own transaction. Readers go by (tx, id) and see only rows whose transaction is older than the oldest one still
-- running, so a later commit cannot appear behind what a reader has seen. An event is written with the row that it is about and removed
-- within a day, so it needs no foreign key.
-- Operators: a long writing transaction holds all readers back, even one in another database of the same server. Transaction ids belong
-- to one server: after a dump is loaded into another server, the service's start removes the events that lie in that server's future.
CREATE TABLE events (
  tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  id bigint GENERATED ALWAYS AS IDENTITY,
  project_id uuid NOT NULL,
  session_id uuid,
  type text NOT NULL,
  at timestamptz NOT NULL,
  data jsonb NOT NULL,
  -- The project first: this serves every reader, and a transaction's events are of few projects.
  CONSTRAINT events_pkey PRIMARY KEY (project_id, tx, id)
);

CREATE INDEX events_at_idx ON events USING brin (at);

-- Up to where a project was pruned: a reader from before that gets `reset`.
CREATE TABLE event_horizons (
  project_id uuid NOT NULL,
  tx xid8 NOT NULL,
  id bigint NOT NULL,
  CONSTRAINT event_horizons_pkey PRIMARY KEY (project_id),
  CONSTRAINT event_horizons_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

-- A project's receivers outside: its own systems, Slack, Discord. Events that an enabled receiver has not read yet are kept longer than
-- 24 hours. A backup has receivers and deliveries, but no events: after a restore a receiver continues with the events from then on.
CREATE TABLE outbound_webhooks (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  format text NOT NULL,
  -- As people see it. The whole address is in the envelope.
  shown_url text NOT NULL,
  events text[] NOT NULL,
  -- Address and signing secrets, sealed. The version counts the writes of it.
  envelope bytea NOT NULL,
  sealed_version integer NOT NULL,
  previous_secret_until timestamptz,
  status text NOT NULL,
  disabled_reason text,
  -- Since when each request failed, and since when people are warned of it.
  failing_since timestamptz,
  warned_at timestamptz,
  -- Its place in the project's events. On another server it begins at the end.
  cursor_tx xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
  cursor_row bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT outbound_webhooks_pkey PRIMARY KEY (id),
  CONSTRAINT outbound_webhooks_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT outbound_webhooks_format_known CHECK (format IN ('standard', 'slack', 'discord')),
  CONSTRAINT outbound_webhooks_status_known CHECK (status IN ('enabled', 'disabled')),
  CONSTRAINT outbound_webhooks_reason_known CHECK (
    disabled_reason IN ('requested', 'gone', 'failing', 'backlog')
  ),
  CONSTRAINT outbound_webhooks_disabled_reasoned CHECK ((status = 'disabled') = (disabled_reason IS NOT NULL))
);

CREATE INDEX outbound_webhooks_project_idx ON outbound_webhooks (project_id, created_at DESC, id DESC);

-- Each event that concerns a receiver becomes a row that is sent until it is accepted.
CREATE TABLE outbound_deliveries (
  id uuid NOT NULL,
  outbound_webhook_id uuid NOT NULL,
  -- The header webhook-id.
  message_id text NOT NULL,
  type text NOT NULL,
  -- The message as JSON. The request's body is made from it, the same each time.
  message text NOT NULL,
  status text NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  -- The next try. Null: the row is at its end.
  due_at timestamptz,
  -- A node sends it until then at most. The number of the claim tells its result from a later node's.
  leased_until timestamptz,
  claim integer NOT NULL DEFAULT 0,
  tried_at timestamptz,
  took_ms integer,
  answer_status integer,
  answer text,
  error text,
  created_at timestamptz NOT NULL,
  ended_at timestamptz,
  CONSTRAINT outbound_deliveries_pkey PRIMARY KEY (id),
  CONSTRAINT outbound_deliveries_webhook_fkey FOREIGN KEY (outbound_webhook_id)
    REFERENCES outbound_webhooks (id) ON DELETE CASCADE,
  CONSTRAINT outbound_deliveries_message_key UNIQUE (outbound_webhook_id, message_id),
  CONSTRAINT outbound_deliveries_status_known CHECK (status IN ('pending', 'delivered', 'failed', 'cancelled')),
  CONSTRAINT outbound_deliveries_pending_due CHECK ((status = 'pending') = (due_at IS NOT NULL)),
  CONSTRAINT outbound_deliveries_end_dated CHECK ((status = 'pending') = (ended_at IS NULL))
);

CREATE INDEX outbound_deliveries_list_idx ON outbound_deliveries (outbound_webhook_id, created_at DESC, id DESC);
CREATE INDEX outbound_deliveries_due_idx ON outbound_deliveries (outbound_webhook_id, due_at) WHERE status = 'pending';
CREATE INDEX outbound_deliveries_ended_idx ON outbound_deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- ---------------------------------------------------------------------------------------------------------------------------------
-- Actors: what they still have to do, and what they did
-- ---------------------------------------------------------------------------------------------------------------------------------

-- Commands of the state machines that are not known to be done. A row is deleted in the transaction that saves its outcome. Rows that a
-- crash leaves are performed again, so every command may be performed twice.
-- Operators: an old row is work that does not get done. Its command says what, last_error and the actor's log say why.
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY,
  actor_kind text NOT NULL,
  actor_id uuid NOT NULL,
  command jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  -- How often the command's handler crashed, and the last crash.
  attempts integer NOT NULL DEFAULT 0,
  last_error text,
  failed_at timestamptz,
  CONSTRAINT outbox_pkey PRIMARY KEY (id),
  CONSTRAINT outbox_actor_kind_known CHECK (
    actor_kind IN ('session', 'sandbox', 'change_request', 'conversation', 'environment_build')
  )
);

CREATE INDEX outbox_actor_idx ON outbox (actor_kind, actor_id, id);

-- Which event moved an actor from which state to which, and what it ordered. With it, the service says why an actor is in its state.
-- A stored actor's row is written by the statement that saves its step, under the number of that version. Triggers and accounts have no
-- stored snapshot: their rows are gathered in memory and written in batches, under numbers of the sequence. The newest 200 rows of an
-- actor stay, for 90 days (duty "retention").
CREATE TABLE transitions (
  actor_kind text NOT NULL,
  -- A uuid; a trigger's is `<project id>/<slug>`.
  actor_id text NOT NULL,
  number bigint GENERATED BY DEFAULT AS IDENTITY,
  at timestamptz NOT NULL,
  event text NOT NULL,
  -- Null: the actor began.
  from_state text,
  to_state text NOT NULL,
  -- Of the event, in words: a failure's message, a commit. Neither prompts nor messages of people.
  detail text,
  -- The names of the commands that the step ordered.
  commands text[] NOT NULL,
  CONSTRAINT transitions_pkey PRIMARY KEY (actor_kind, actor_id, number),
  CONSTRAINT transitions_actor_kind_known CHECK (
    actor_kind IN ('session', 'sandbox', 'conversation', 'change_request', 'trigger', 'account', 'environment_build')
  ),
  CONSTRAINT transitions_detail_short CHECK (char_length(detail) <= 500)
);

-- Rows are added in the order of time, so a block range index finds old ones, and costs next to nothing.
CREATE INDEX transitions_at_idx ON transitions USING brin (at);

-- ---------------------------------------------------------------------------------------------------------------------------------
-- The audit record: who did what, from where
-- ---------------------------------------------------------------------------------------------------------------------------------

-- A row is written in the transaction of the change that it records, and never changed. Rows refer to nothing, because they outlive what
-- they name: browsers are deleted, and people may be renamed.
-- Operators: rows go after PLATFORM_AUDIT_RETENTION_MS, a year by default.
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
-- For pruning. A B-tree would also be chosen for pages with a filter, and read far more rows.
CREATE INDEX audit_events_at_idx ON audit_events USING brin (at);

-- A row that was changed would be no record. Pruning deletes rows.
CREATE FUNCTION audit_events_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of audit_events are never changed';
END;
$$;
CREATE TRIGGER audit_events_fixed BEFORE UPDATE ON audit_events
  FOR EACH ROW EXECUTE FUNCTION audit_events_refuse_update();

-- ---------------------------------------------------------------------------------------------------------------------------------
-- The installation
-- ---------------------------------------------------------------------------------------------------------------------------------

-- Among them the check value of the master key: the start refuses a wrong key, because the right key could not open its writes.
CREATE TABLE settings (
  key text NOT NULL,
  value text NOT NULL,
  CONSTRAINT settings_pkey PRIMARY KEY (key)
);
