-- What an empty database and all migrations give; written by test/store/schema/migrate.test.ts.

CREATE TYPE project_session_status AS ENUM ('queued', 'branching', 'provisioning', 'running', 'stopped', 'failed', 'completed');

CREATE TYPE session_sandbox_status AS ENUM ('provisioning', 'active', 'stopped', 'error', 'archived');

CREATE TABLE accounts (
  id uuid NOT NULL,
  name text NOT NULL,
  tier text NOT NULL,
  session_cap integer NOT NULL,
  active_sessions integer NOT NULL DEFAULT 0,
  drained_turns bigint NOT NULL DEFAULT 0,
  created_at timestamp with time zone NOT NULL,
  queued_fires integer NOT NULL DEFAULT 0,
  stored_request_bytes bigint NOT NULL DEFAULT 0,
  CONSTRAINT accounts_active_sessions_not_negative CHECK ((active_sessions >= 0)),
  CONSTRAINT accounts_pkey PRIMARY KEY (id),
  CONSTRAINT accounts_queued_fires_not_negative CHECK ((queued_fires >= 0)),
  CONSTRAINT accounts_session_cap_not_negative CHECK ((session_cap >= 0))
);

CREATE TABLE approvals (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  status text NOT NULL,
  arguments_envelope bytea,
  result_envelope bytea,
  message text,
  asked_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  decided_by uuid,
  decided_at timestamp with time zone,
  moved_at timestamp with time zone NOT NULL,
  attended_until timestamp with time zone NOT NULL,
  delivered_at timestamp with time zone,
  CONSTRAINT approvals_arguments_kept CHECK (((status = ANY (ARRAY['pending'::text, 'approved'::text, 'calling'::text])) = (arguments_envelope IS NOT NULL))),
  CONSTRAINT approvals_call_fkey FOREIGN KEY (id) REFERENCES executor_calls(id) ON DELETE CASCADE,
  CONSTRAINT approvals_called_by_a_person CHECK (((status = ANY (ARRAY['pending'::text, 'expired'::text])) OR (decided_by IS NOT NULL))),
  CONSTRAINT approvals_decided_by_fkey FOREIGN KEY (decided_by) REFERENCES users(id),
  CONSTRAINT approvals_decided_whole CHECK ((num_nonnulls(decided_by, decided_at) = ANY (ARRAY[0, 2]))),
  CONSTRAINT approvals_pkey PRIMARY KEY (id),
  CONSTRAINT approvals_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT approvals_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'calling'::text, 'done'::text, 'denied'::text, 'refused'::text, 'expired'::text, 'unknown'::text])))
);
CREATE INDEX approvals_open_idx ON public.approvals USING btree (moved_at) WHERE (delivered_at IS NULL);
CREATE INDEX approvals_project_idx ON public.approvals USING btree (project_id, asked_at DESC, id DESC);
CREATE INDEX approvals_result_idx ON public.approvals USING btree (delivered_at) WHERE (result_envelope IS NOT NULL);

CREATE TABLE audit_events (
  id uuid NOT NULL,
  at timestamp with time zone NOT NULL,
  account_id uuid,
  project_id uuid,
  actor_kind text NOT NULL,
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
  CONSTRAINT audit_events_actor_known CHECK ((actor_kind = ANY (ARRAY['person'::text, 'session'::text, 'trigger'::text, 'operator'::text, 'service'::text, 'unknown'::text]))),
  CONSTRAINT audit_events_changes_object CHECK ((jsonb_typeof(changes) = 'object'::text)),
  CONSTRAINT audit_events_outcome_known CHECK ((outcome = ANY (ARRAY['done'::text, 'begun'::text, 'refused'::text]))),
  CONSTRAINT audit_events_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_events_account_idx ON public.audit_events USING btree (account_id, at DESC, id DESC);
CREATE INDEX audit_events_action_idx ON public.audit_events USING btree (account_id, action, at DESC, id DESC);
CREATE INDEX audit_events_actor_idx ON public.audit_events USING btree (account_id, actor_id, at DESC, id DESC) WHERE (actor_id IS NOT NULL);
CREATE INDEX audit_events_at_idx ON public.audit_events USING brin (at);
CREATE INDEX audit_events_project_idx ON public.audit_events USING btree (project_id, at DESC, id DESC) WHERE (project_id IS NOT NULL);

CREATE TABLE change_request_remarks (
  id uuid NOT NULL,
  change_request_id uuid NOT NULL,
  kind text NOT NULL,
  body text NOT NULL,
  commit text,
  file text,
  side text,
  first_line integer,
  last_line integer,
  reply_to uuid,
  created_by uuid NOT NULL,
  created_at timestamp with time zone NOT NULL,
  edited_at timestamp with time zone,
  resolved_by uuid,
  resolved_at timestamp with time zone,
  CONSTRAINT change_request_remarks_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id),
  CONSTRAINT change_request_remarks_kind_known CHECK ((kind = ANY (ARRAY['comment'::text, 'approval'::text, 'changes_requested'::text]))),
  CONSTRAINT change_request_remarks_pkey PRIMARY KEY (id),
  CONSTRAINT change_request_remarks_place_whole CHECK ((num_nonnulls(file, side, first_line, last_line) = ANY (ARRAY[0, 4]))),
  CONSTRAINT change_request_remarks_reply_fkey FOREIGN KEY (reply_to) REFERENCES change_request_remarks(id) ON DELETE CASCADE,
  CONSTRAINT change_request_remarks_request_fkey FOREIGN KEY (change_request_id) REFERENCES change_requests(id) ON DELETE CASCADE,
  CONSTRAINT change_request_remarks_resolution_whole CHECK ((num_nonnulls(resolved_by, resolved_at) = ANY (ARRAY[0, 2]))),
  CONSTRAINT change_request_remarks_resolved_by_fkey FOREIGN KEY (resolved_by) REFERENCES users(id),
  CONSTRAINT change_request_remarks_side_known CHECK ((side = ANY (ARRAY['base'::text, 'head'::text])))
);
CREATE INDEX change_request_remarks_list_idx ON public.change_request_remarks USING btree (change_request_id, created_at, id);
CREATE INDEX change_request_remarks_reply_idx ON public.change_request_remarks USING btree (reply_to) WHERE (reply_to IS NOT NULL);

CREATE TABLE change_request_reviewers (
  change_request_id uuid NOT NULL,
  user_id uuid NOT NULL,
  asked_by uuid NOT NULL,
  asked_at timestamp with time zone NOT NULL,
  CONSTRAINT change_request_reviewers_asked_by_fkey FOREIGN KEY (asked_by) REFERENCES users(id),
  CONSTRAINT change_request_reviewers_pkey PRIMARY KEY (change_request_id, user_id),
  CONSTRAINT change_request_reviewers_request_fkey FOREIGN KEY (change_request_id) REFERENCES change_requests(id) ON DELETE CASCADE,
  CONSTRAINT change_request_reviewers_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE INDEX change_request_reviewers_user_idx ON public.change_request_reviewers USING btree (user_id);

CREATE TABLE change_requests (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  number integer NOT NULL,
  session_id uuid,
  head_ref text NOT NULL,
  base_ref text NOT NULL,
  title text NOT NULL,
  description text NOT NULL,
  status text NOT NULL,
  created_by uuid,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  base_commit text,
  head_commit text,
  merged_commit text,
  merged_at timestamp with time zone,
  merged_by uuid,
  base_tip text,
  head_tip text,
  pull_number integer,
  pull_url text,
  pull_status text,
  state text NOT NULL,
  state_context jsonb NOT NULL,
  version integer NOT NULL DEFAULT 1,
  open_threads integer NOT NULL DEFAULT 0,
  changes_asked_by uuid,
  CONSTRAINT change_requests_changes_asked_by_fkey FOREIGN KEY (changes_asked_by) REFERENCES users(id),
  CONSTRAINT change_requests_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id),
  CONSTRAINT change_requests_merge_whole CHECK ((((num_nonnulls(head_commit, merged_commit, merged_at) = 3) AND (status = 'merged'::text)) OR ((num_nonnulls(merged_commit, merged_at, merged_by) = 0) AND (status <> 'merged'::text)))),
  CONSTRAINT change_requests_merged_by_fkey FOREIGN KEY (merged_by) REFERENCES users(id),
  CONSTRAINT change_requests_number_key UNIQUE (project_id, number),
  CONSTRAINT change_requests_pkey PRIMARY KEY (id),
  CONSTRAINT change_requests_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  CONSTRAINT change_requests_pull_whole CHECK ((((pull_status IS NULL) AND (num_nonnulls(pull_number, pull_url) = 0)) OR ((pull_status = 'wanted'::text) AND (num_nonnulls(pull_number, pull_url) = 0)) OR ((pull_status = ANY (ARRAY['open'::text, 'merged'::text, 'closed'::text])) AND (num_nonnulls(pull_number, pull_url) = 2)))),
  CONSTRAINT change_requests_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id),
  CONSTRAINT change_requests_sides_whole CHECK ((num_nonnulls(base_commit, head_commit) = ANY (ARRAY[0, 2]))),
  CONSTRAINT change_requests_state_known CHECK (((state = status) OR ((state = 'merging'::text) AND (status = ANY (ARRAY['open'::text, 'closed'::text]))))),
  CONSTRAINT change_requests_status_known CHECK ((status = ANY (ARRAY['open'::text, 'merged'::text, 'closed'::text])))
);
CREATE INDEX change_requests_head_idx ON public.change_requests USING btree (project_id, head_ref, number DESC);
CREATE INDEX change_requests_list_idx ON public.change_requests USING btree (project_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX change_requests_open_head_key ON public.change_requests USING btree (project_id, head_ref) WHERE (status = 'open'::text);
CREATE INDEX change_requests_pull_idx ON public.change_requests USING btree (project_id, pull_number) WHERE (pull_number IS NOT NULL);
CREATE INDEX change_requests_pulls_idx ON public.change_requests USING btree (project_id, number) WHERE ((status = 'open'::text) OR (pull_status = ANY (ARRAY['wanted'::text, 'open'::text])));
CREATE INDEX change_requests_session_idx ON public.change_requests USING btree (session_id) WHERE (session_id IS NOT NULL);

CREATE TABLE clone_credentials (
  hash text NOT NULL,
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  sandbox_id uuid NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT clone_credentials_pkey PRIMARY KEY (hash),
  CONSTRAINT clone_credentials_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  CONSTRAINT clone_credentials_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes(id),
  CONSTRAINT clone_credentials_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id)
);
CREATE INDEX clone_credentials_sandbox_idx ON public.clone_credentials USING btree (sandbox_id, expires_at);
CREATE INDEX clone_credentials_session_idx ON public.clone_credentials USING btree (session_id);

CREATE TABLE cluster_locks (
  shard_id text NOT NULL,
  address text NOT NULL,
  acquired_at timestamp with time zone NOT NULL,
  CONSTRAINT cluster_locks_pkey PRIMARY KEY (shard_id)
);

CREATE TABLE cluster_runners (
  machine_id integer NOT NULL,
  address text NOT NULL,
  runner text NOT NULL,
  healthy boolean NOT NULL DEFAULT true,
  last_heartbeat timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT cluster_runners_address_key UNIQUE (address),
  CONSTRAINT cluster_runners_pkey PRIMARY KEY (machine_id)
);

CREATE TABLE connector_catalogues (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  url text NOT NULL,
  protocol text,
  latest text,
  latest_pin text,
  latest_at timestamp with time zone,
  accepted text,
  accepted_pin text,
  accepted_at timestamp with time zone,
  accepted_by uuid,
  failure text,
  tried_at timestamp with time zone NOT NULL,
  CONSTRAINT connector_catalogues_accepted_by_fkey FOREIGN KEY (accepted_by) REFERENCES users(id),
  CONSTRAINT connector_catalogues_accepted_whole CHECK ((num_nonnulls(accepted, accepted_pin, accepted_at, accepted_by) = ANY (ARRAY[0, 4]))),
  CONSTRAINT connector_catalogues_latest_whole CHECK ((num_nonnulls(protocol, latest, latest_pin, latest_at) = ANY (ARRAY[0, 4]))),
  CONSTRAINT connector_catalogues_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT connector_catalogues_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX connector_catalogues_tried_idx ON public.connector_catalogues USING btree (tried_at);

CREATE TABLE connector_credentials (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  version integer NOT NULL,
  origin text NOT NULL,
  envelope bytea,
  updated_at timestamp with time zone NOT NULL,
  updated_by uuid,
  kind text NOT NULL DEFAULT 'value'::text,
  person_id uuid,
  CONSTRAINT connector_credentials_key UNIQUE NULLS NOT DISTINCT (project_id, slug, person_id),
  CONSTRAINT connector_credentials_kind_known CHECK ((kind = ANY (ARRAY['value'::text, 'oauth'::text, 'client_credentials'::text]))),
  CONSTRAINT connector_credentials_person_fkey FOREIGN KEY (person_id) REFERENCES users(id),
  CONSTRAINT connector_credentials_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT connector_credentials_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES users(id),
  CONSTRAINT connector_credentials_version_positive CHECK ((version > 0))
);
CREATE INDEX connector_credentials_person_idx ON public.connector_credentials USING btree (person_id) WHERE (person_id IS NOT NULL);

CREATE TABLE connector_flows (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  user_id uuid NOT NULL,
  origin text NOT NULL,
  ticket_hash text NOT NULL,
  state_hash text NOT NULL,
  browser_hash text,
  envelope bytea NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  is_own boolean NOT NULL,
  opened_in uuid,
  CONSTRAINT connector_flows_pkey PRIMARY KEY (project_id, slug, user_id),
  CONSTRAINT connector_flows_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT connector_flows_state_unique UNIQUE (state_hash),
  CONSTRAINT connector_flows_ticket_unique UNIQUE (ticket_hash),
  CONSTRAINT connector_flows_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE INDEX connector_flows_expires_idx ON public.connector_flows USING btree (expires_at);

CREATE TABLE connector_grants (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  version integer NOT NULL,
  origin text NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  envelope bytea,
  issuer text,
  expires_at timestamp with time zone,
  granted_at timestamp with time zone NOT NULL,
  granted_by uuid,
  renewed_at timestamp with time zone,
  failure text,
  failed_at timestamp with time zone,
  lease_holder uuid,
  lease_until timestamp with time zone,
  person_id uuid,
  CONSTRAINT connector_grants_failure_whole CHECK ((num_nonnulls(failure, failed_at) = ANY (ARRAY[0, 2]))),
  CONSTRAINT connector_grants_granted_by_fkey FOREIGN KEY (granted_by) REFERENCES users(id),
  CONSTRAINT connector_grants_held_whole CHECK (((status = 'held'::text) = (envelope IS NOT NULL))),
  CONSTRAINT connector_grants_key UNIQUE NULLS NOT DISTINCT (project_id, slug, person_id),
  CONSTRAINT connector_grants_kind_known CHECK ((kind = ANY (ARRAY['oauth'::text, 'client_credentials'::text]))),
  CONSTRAINT connector_grants_lease_whole CHECK ((num_nonnulls(lease_holder, lease_until) = ANY (ARRAY[0, 2]))),
  CONSTRAINT connector_grants_person_fkey FOREIGN KEY (person_id) REFERENCES users(id),
  CONSTRAINT connector_grants_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT connector_grants_refused_whole CHECK (((status <> 'refused'::text) OR (failure IS NOT NULL))),
  CONSTRAINT connector_grants_status_known CHECK ((status = ANY (ARRAY['empty'::text, 'held'::text, 'refused'::text, 'removed'::text]))),
  CONSTRAINT connector_grants_version_positive CHECK ((version > 0))
);
CREATE INDEX connector_grants_person_idx ON public.connector_grants USING btree (person_id) WHERE (person_id IS NOT NULL);

CREATE TABLE conversation_attachments (
  session_id uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  media_type text NOT NULL,
  sha256 text NOT NULL,
  content bytea NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  CONSTRAINT conversation_attachments_bounded CHECK ((octet_length(content) <= 10485760)),
  CONSTRAINT conversation_attachments_conversation_fkey FOREIGN KEY (session_id) REFERENCES conversations(session_id) ON DELETE CASCADE,
  CONSTRAINT conversation_attachments_pkey PRIMARY KEY (session_id, id)
);
CREATE INDEX conversation_attachments_expiring_idx ON public.conversation_attachments USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE TABLE conversation_items (
  session_id uuid NOT NULL,
  id uuid NOT NULL,
  seq integer NOT NULL,
  place integer NOT NULL,
  native_id text,
  sandbox_id uuid,
  rev bigint NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  record jsonb NOT NULL,
  bytes integer NOT NULL,
  native_order bigint,
  words tsvector,
  CONSTRAINT conversation_items_conversation_fkey FOREIGN KEY (session_id) REFERENCES conversations(session_id) ON DELETE CASCADE,
  CONSTRAINT conversation_items_kind_known CHECK ((kind = ANY (ARRAY['message'::text, 'thought'::text, 'tool'::text, 'plan'::text, 'request'::text, 'note'::text]))),
  CONSTRAINT conversation_items_native_key UNIQUE (session_id, native_id),
  CONSTRAINT conversation_items_pkey PRIMARY KEY (session_id, id),
  CONSTRAINT conversation_items_place_key UNIQUE (session_id, place),
  CONSTRAINT conversation_items_seq_key UNIQUE (session_id, seq),
  CONSTRAINT conversation_items_status_known CHECK ((status = ANY (ARRAY['queued'::text, 'sending'::text, 'accepted'::text, 'cancelled'::text, 'pending'::text, 'running'::text, 'completed'::text, 'failed'::text, 'interrupted'::text, 'lost'::text])))
);
CREATE INDEX conversation_items_open_idx ON public.conversation_items USING btree (session_id, place) WHERE (status = ANY (ARRAY['queued'::text, 'sending'::text, 'pending'::text, 'running'::text]));
CREATE INDEX conversation_items_wordless_idx ON public.conversation_items USING btree (session_id) WHERE ((words IS NULL) AND (kind = 'message'::text) AND (status = ANY (ARRAY['accepted'::text, 'completed'::text, 'failed'::text, 'interrupted'::text, 'lost'::text])));
CREATE INDEX conversation_items_words_idx ON public.conversation_items USING gin (words) WHERE (words IS NOT NULL);

CREATE TABLE conversation_outputs (
  session_id uuid NOT NULL,
  item_id uuid NOT NULL,
  text text NOT NULL,
  bytes integer NOT NULL,
  CONSTRAINT conversation_outputs_bounded CHECK ((octet_length(text) <= 1048576)),
  CONSTRAINT conversation_outputs_item_fkey FOREIGN KEY (session_id, item_id) REFERENCES conversation_items(session_id, id) ON DELETE CASCADE,
  CONSTRAINT conversation_outputs_pkey PRIMARY KEY (session_id, item_id)
);

CREATE TABLE conversations (
  session_id uuid NOT NULL,
  state text NOT NULL DEFAULT 'idle'::text,
  state_context jsonb NOT NULL DEFAULT '{}'::jsonb,
  version integer NOT NULL DEFAULT 1,
  seq integer NOT NULL DEFAULT 0,
  sandbox_id uuid,
  sandbox_rev bigint,
  turn_state text NOT NULL DEFAULT 'idle'::text,
  turn_since timestamp with time zone NOT NULL,
  turn_waiting_for uuid,
  turn_seq integer NOT NULL DEFAULT 0,
  usage jsonb NOT NULL DEFAULT '{"cost_usd": 0, "input_tokens": 0, "cached_tokens": 0, "output_tokens": 0}'::jsonb,
  bytes bigint NOT NULL DEFAULT 0,
  created_at timestamp with time zone NOT NULL,
  turn_to_tell jsonb,
  sandbox_order bigint,
  turn_request jsonb,
  last_sentence text,
  CONSTRAINT conversations_pkey PRIMARY KEY (session_id),
  CONSTRAINT conversations_sandbox_whole CHECK (((sandbox_id IS NULL) = (sandbox_rev IS NULL))),
  CONSTRAINT conversations_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id) ON DELETE CASCADE,
  CONSTRAINT conversations_state_known CHECK ((state = ANY (ARRAY['idle'::text, 'sending'::text, 'running'::text, 'requires_action'::text]))),
  CONSTRAINT conversations_turn_state_known CHECK ((turn_state = ANY (ARRAY['idle'::text, 'running'::text, 'requires_action'::text])))
);

CREATE TABLE deleted_projects (
  id uuid NOT NULL,
  deleted_at timestamp with time zone NOT NULL,
  CONSTRAINT deleted_projects_pkey PRIMARY KEY (id)
);

CREATE TABLE delivered_subscriptions (
  sandbox_id uuid NOT NULL,
  subscription_id uuid NOT NULL,
  user_id uuid NOT NULL,
  runtime text NOT NULL,
  CONSTRAINT delivered_subscriptions_pkey PRIMARY KEY (sandbox_id),
  CONSTRAINT delivered_subscriptions_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes(id) ON DELETE CASCADE,
  CONSTRAINT delivered_subscriptions_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE INDEX delivered_subscriptions_user_idx ON public.delivered_subscriptions USING btree (user_id);

CREATE TABLE device_logins (
  id uuid NOT NULL,
  device_hash text NOT NULL,
  user_hash text NOT NULL,
  client text NOT NULL,
  address text,
  user_agent text,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  next_poll_at timestamp with time zone NOT NULL,
  poll_ms integer NOT NULL,
  state text NOT NULL DEFAULT 'waiting'::text,
  user_id uuid,
  project_id uuid,
  token_expires_at timestamp with time zone,
  decided_with uuid,
  CONSTRAINT device_logins_decided CHECK (((state = 'waiting'::text) = (user_id IS NULL))),
  CONSTRAINT device_logins_device_unique UNIQUE (device_hash),
  CONSTRAINT device_logins_pkey PRIMARY KEY (id),
  CONSTRAINT device_logins_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  CONSTRAINT device_logins_state_known CHECK ((state = ANY (ARRAY['waiting'::text, 'approved'::text, 'denied'::text]))),
  CONSTRAINT device_logins_user_fkey FOREIGN KEY (user_id) REFERENCES users(id),
  CONSTRAINT device_logins_user_hash_unique UNIQUE (user_hash)
);
CREATE INDEX device_logins_expiry_idx ON public.device_logins USING btree (expires_at, id);
CREATE INDEX device_logins_project_idx ON public.device_logins USING btree (project_id) WHERE (project_id IS NOT NULL);
CREATE INDEX device_logins_user_idx ON public.device_logins USING btree (user_id) WHERE (user_id IS NOT NULL);

CREATE TABLE environment_bases (
  reference text NOT NULL,
  digest text,
  looked_up_at timestamp with time zone,
  tried_at timestamp with time zone NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  problem text,
  due_at timestamp with time zone NOT NULL,
  CONSTRAINT environment_bases_answer_dated CHECK (((digest IS NULL) = (looked_up_at IS NULL))),
  CONSTRAINT environment_bases_pkey PRIMARY KEY (reference),
  CONSTRAINT environment_bases_problem_known CHECK (((problem IS NULL) = (failures = 0)))
);

CREATE TABLE environment_build_logs (
  build_id uuid NOT NULL,
  number integer NOT NULL,
  text text NOT NULL,
  CONSTRAINT environment_build_logs_build_fkey FOREIGN KEY (build_id) REFERENCES environment_builds(id) ON DELETE CASCADE,
  CONSTRAINT environment_build_logs_pkey PRIMARY KEY (build_id, number)
);

CREATE TABLE environment_builds (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  node_id text NOT NULL,
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
  is_forgotten boolean NOT NULL DEFAULT false,
  created_at timestamp with time zone NOT NULL,
  begun_at timestamp with time zone,
  ended_at timestamp with time zone,
  bases jsonb NOT NULL DEFAULT '[]'::jsonb,
  CONSTRAINT environment_builds_cause_known CHECK ((cause = ANY (ARRAY['manifest'::text, 'session'::text, 'asked'::text, 'refresh'::text]))),
  CONSTRAINT environment_builds_end_dated CHECK (((status = ANY (ARRAY['ready'::text, 'failed'::text, 'cancelled'::text])) = (ended_at IS NOT NULL))),
  CONSTRAINT environment_builds_pkey PRIMARY KEY (id),
  CONSTRAINT environment_builds_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT environment_builds_requester_fkey FOREIGN KEY (requested_by) REFERENCES users(id),
  CONSTRAINT environment_builds_status_known CHECK ((status = ANY (ARRAY['queued'::text, 'resolving'::text, 'building'::text, 'exporting'::text, 'ready'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE UNIQUE INDEX environment_builds_live_key ON public.environment_builds USING btree (project_id, node_id, key) WHERE (status = ANY (ARRAY['queued'::text, 'resolving'::text, 'building'::text, 'exporting'::text]));
CREATE INDEX environment_builds_project_idx ON public.environment_builds USING btree (project_id, created_at DESC, id DESC);

CREATE TABLE event_horizons (
  project_id uuid NOT NULL,
  tx xid8 NOT NULL,
  id bigint NOT NULL,
  CONSTRAINT event_horizons_pkey PRIMARY KEY (project_id),
  CONSTRAINT event_horizons_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);

CREATE TABLE events (
  tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  project_id uuid NOT NULL,
  session_id uuid,
  type text NOT NULL,
  at timestamp with time zone NOT NULL,
  data jsonb NOT NULL,
  news text,
  CONSTRAINT events_pkey PRIMARY KEY (project_id, tx, id)
);
CREATE INDEX events_at_idx ON public.events USING brin (at);
CREATE INDEX events_news_idx ON public.events USING btree (project_id, id DESC) WHERE (news IS NOT NULL);
CREATE INDEX events_news_order_idx ON public.events USING btree (tx, id) WHERE (news IS NOT NULL);

CREATE TABLE executor_calls (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  user_id uuid NOT NULL,
  started_by text NOT NULL,
  connector text NOT NULL,
  tool text NOT NULL,
  origin text NOT NULL,
  pin text,
  rule text,
  arguments_digest text NOT NULL,
  arguments_bytes integer NOT NULL,
  arguments_preview text NOT NULL,
  at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  outcome text,
  message text,
  upstream_status integer,
  result_bytes integer,
  begun_at timestamp with time zone,
  approver_id uuid,
  CONSTRAINT executor_calls_approver_fkey FOREIGN KEY (approver_id) REFERENCES users(id),
  CONSTRAINT executor_calls_ended_whole CHECK (((ended_at IS NULL) = ((outcome IS NULL) OR (outcome = 'pending'::text)))),
  CONSTRAINT executor_calls_outcome_known CHECK ((outcome = ANY (ARRAY['ok'::text, 'error'::text, 'denied'::text, 'pending'::text, 'unknown'::text]))),
  CONSTRAINT executor_calls_pkey PRIMARY KEY (id),
  CONSTRAINT executor_calls_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT executor_calls_started_by_known CHECK ((started_by = ANY (ARRAY['user'::text, 'trigger'::text])))
);
CREATE INDEX executor_calls_at_idx ON public.executor_calls USING btree (at);
CREATE INDEX executor_calls_begun_idx ON public.executor_calls USING btree (project_id, connector, begun_at) WHERE (begun_at IS NOT NULL);
CREATE INDEX executor_calls_connector_idx ON public.executor_calls USING btree (project_id, connector, at);
CREATE INDEX executor_calls_open_idx ON public.executor_calls USING btree (session_id, at) WHERE (outcome IS NULL);
CREATE INDEX executor_calls_project_idx ON public.executor_calls USING btree (project_id, at DESC, id DESC);
CREATE INDEX executor_calls_waiting_idx ON public.executor_calls USING btree (session_id) WHERE (outcome = 'pending'::text);

CREATE TABLE fire_queue (
  fire_id uuid NOT NULL,
  account_id uuid NOT NULL,
  project_id uuid NOT NULL,
  trigger_slug text,
  kind text NOT NULL,
  session jsonb NOT NULL,
  queued_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  arrival bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  template jsonb,
  CONSTRAINT fire_queue_pkey PRIMARY KEY (fire_id)
);
CREATE INDEX fire_queue_account_idx ON public.fire_queue USING btree (account_id, project_id, arrival);
CREATE UNIQUE INDEX fire_queue_cron_key ON public.fire_queue USING btree (project_id, trigger_slug) WHERE (kind = 'cron'::text);
CREATE INDEX fire_queue_expiry_idx ON public.fire_queue USING btree (expires_at);

CREATE TABLE fire_requests (
  fire_id uuid NOT NULL,
  account_id uuid NOT NULL,
  body bytea NOT NULL,
  encoding text NOT NULL,
  headers jsonb,
  CONSTRAINT fire_requests_encoding_known CHECK ((encoding = ANY (ARRAY['identity'::text, 'deflate'::text]))),
  CONSTRAINT fire_requests_pkey PRIMARY KEY (account_id, fire_id)
);

CREATE TABLE fires (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  project_id uuid NOT NULL,
  trigger_slug text,
  kind text NOT NULL,
  status text NOT NULL,
  reason text,
  scheduled_for timestamp with time zone,
  received_at timestamp with time zone NOT NULL,
  delivery_id text,
  answers_delivery boolean NOT NULL,
  session_id uuid,
  attempts integer NOT NULL,
  replay_of uuid,
  fired_at timestamp with time zone,
  verified_with text,
  session_failed boolean NOT NULL DEFAULT false,
  duplicate_of uuid,
  CONSTRAINT fires_cron_has_instant CHECK (((kind <> 'cron'::text) OR (scheduled_for IS NOT NULL))),
  CONSTRAINT fires_fired_has_session CHECK ((((status = 'fired'::text) = (session_id IS NOT NULL)) AND ((status = 'fired'::text) = (fired_at IS NOT NULL)))),
  CONSTRAINT fires_kind_known CHECK ((kind = ANY (ARRAY['cron'::text, 'webhook'::text, 'manual'::text, 'session'::text]))),
  CONSTRAINT fires_pkey PRIMARY KEY (id),
  CONSTRAINT fires_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  CONSTRAINT fires_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id),
  CONSTRAINT fires_session_has_no_trigger CHECK (((kind = 'session'::text) = (trigger_slug IS NULL))),
  CONSTRAINT fires_status_known CHECK ((status = ANY (ARRAY['queued'::text, 'fired'::text, 'failed'::text, 'skipped'::text, 'expired'::text, 'cancelled'::text, 'duplicate'::text]))),
  CONSTRAINT fires_verified_with_known CHECK ((verified_with = ANY (ARRAY['current'::text, 'previous'::text])))
);
CREATE UNIQUE INDEX fires_delivery_key ON public.fires USING btree (delivery_id, project_id, trigger_slug) WHERE answers_delivery;
CREATE INDEX fires_ended_idx ON public.fires USING btree (project_id, status, received_at, id) WHERE (status <> ALL (ARRAY['fired'::text, 'queued'::text]));
CREATE INDEX fires_failed_idx ON public.fires USING btree (project_id, received_at, id) WHERE ((status = 'failed'::text) OR session_failed);
CREATE INDEX fires_failed_trigger_idx ON public.fires USING btree (project_id, trigger_slug, received_at, id) WHERE ((status = 'failed'::text) OR session_failed);
CREATE UNIQUE INDEX fires_instant_key ON public.fires USING btree (project_id, trigger_slug, scheduled_for) WHERE ((kind = 'cron'::text) AND (replay_of IS NULL) AND (status <> 'duplicate'::text));
CREATE INDEX fires_project_idx ON public.fires USING btree (project_id, received_at, id);
CREATE INDEX fires_received_idx ON public.fires USING brin (received_at);
CREATE INDEX fires_session_idx ON public.fires USING btree (session_id) WHERE (session_id IS NOT NULL);
CREATE INDEX fires_trigger_idx ON public.fires USING btree (project_id, trigger_slug, received_at, id);

CREATE TABLE identities (
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL,
  created_at timestamp with time zone NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  signed_in_at timestamp with time zone,
  email text,
  CONSTRAINT identities_id_unique UNIQUE (id),
  CONSTRAINT identities_pkey PRIMARY KEY (issuer, subject),
  CONSTRAINT identities_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE INDEX identities_user_idx ON public.identities USING btree (user_id);

CREATE TABLE invitations (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  hash text NOT NULL,
  name text NOT NULL,
  role text NOT NULL,
  projects jsonb NOT NULL,
  created_by uuid NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  accepted_at timestamp with time zone,
  accepted_by uuid,
  revoked_at timestamp with time zone,
  CONSTRAINT invitations_accepted_by_fkey FOREIGN KEY (accepted_by) REFERENCES users(id),
  CONSTRAINT invitations_accepted_whole CHECK (((accepted_at IS NULL) = (accepted_by IS NULL))),
  CONSTRAINT invitations_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT invitations_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id),
  CONSTRAINT invitations_hash_key UNIQUE (hash),
  CONSTRAINT invitations_pkey PRIMARY KEY (id),
  CONSTRAINT invitations_role_known CHECK ((role = ANY (ARRAY['member'::text, 'owner'::text])))
);
CREATE INDEX invitations_account_idx ON public.invitations USING btree (account_id, created_at DESC, id DESC);

CREATE TABLE model_providers (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  base_url text NOT NULL,
  models text[] NOT NULL,
  sealed_version integer NOT NULL,
  envelope bytea NOT NULL,
  has_key boolean NOT NULL,
  tried_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  prices jsonb NOT NULL DEFAULT '{}'::jsonb,
  project_id uuid,
  user_id uuid,
  refused_at timestamp with time zone,
  refusal text,
  CONSTRAINT model_providers_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT model_providers_kind_known CHECK ((kind = ANY (ARRAY['anthropic'::text, 'openai'::text, 'openai-compatible'::text, 'gemini'::text]))),
  CONSTRAINT model_providers_one_owner CHECK (((project_id IS NULL) OR (user_id IS NULL))),
  CONSTRAINT model_providers_pkey PRIMARY KEY (id),
  CONSTRAINT model_providers_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT model_providers_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE UNIQUE INDEX model_providers_name_key ON public.model_providers USING btree (account_id, project_id, user_id, name) NULLS NOT DISTINCT;
CREATE INDEX model_providers_project_idx ON public.model_providers USING btree (project_id);
CREATE INDEX model_providers_user_idx ON public.model_providers USING btree (user_id);

CREATE TABLE model_usage (
  session_id uuid NOT NULL,
  day date NOT NULL,
  model text NOT NULL,
  project_id uuid NOT NULL,
  calls bigint NOT NULL,
  untold_calls bigint NOT NULL,
  input_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  estimated_tokens bigint NOT NULL DEFAULT 0,
  cost bigint NOT NULL DEFAULT 0,
  CONSTRAINT model_usage_pkey PRIMARY KEY (session_id, day, model),
  CONSTRAINT model_usage_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT model_usage_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id)
);
CREATE INDEX model_usage_project_idx ON public.model_usage USING btree (project_id, day);

CREATE TABLE nodes (
  id text NOT NULL,
  url text,
  beats bigint NOT NULL,
  last_seen_at timestamp with time zone NOT NULL,
  dead_at timestamp with time zone,
  CONSTRAINT nodes_pkey PRIMARY KEY (id)
);

CREATE TABLE outbound_deliveries (
  id uuid NOT NULL,
  outbound_webhook_id uuid NOT NULL,
  message_id text NOT NULL,
  type text NOT NULL,
  message text NOT NULL,
  status text NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  due_at timestamp with time zone,
  leased_until timestamp with time zone,
  claim integer NOT NULL DEFAULT 0,
  tried_at timestamp with time zone,
  took_ms integer,
  answer_status integer,
  answer text,
  error text,
  created_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  CONSTRAINT outbound_deliveries_end_dated CHECK (((status = 'pending'::text) = (ended_at IS NULL))),
  CONSTRAINT outbound_deliveries_message_key UNIQUE (outbound_webhook_id, message_id),
  CONSTRAINT outbound_deliveries_pending_due CHECK (((status = 'pending'::text) = (due_at IS NOT NULL))),
  CONSTRAINT outbound_deliveries_pkey PRIMARY KEY (id),
  CONSTRAINT outbound_deliveries_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'cancelled'::text]))),
  CONSTRAINT outbound_deliveries_webhook_fkey FOREIGN KEY (outbound_webhook_id) REFERENCES outbound_webhooks(id) ON DELETE CASCADE
);
CREATE INDEX outbound_deliveries_due_idx ON public.outbound_deliveries USING btree (outbound_webhook_id, due_at) WHERE (status = 'pending'::text);
CREATE INDEX outbound_deliveries_ended_idx ON public.outbound_deliveries USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX outbound_deliveries_list_idx ON public.outbound_deliveries USING btree (outbound_webhook_id, created_at DESC, id DESC);

CREATE TABLE outbound_webhooks (
  id uuid NOT NULL,
  project_id uuid,
  format text NOT NULL,
  shown_url text,
  events text[] NOT NULL,
  envelope bytea,
  sealed_version integer NOT NULL,
  previous_secret_until timestamp with time zone,
  status text NOT NULL,
  disabled_reason text,
  failing_since timestamp with time zone,
  warned_at timestamp with time zone,
  cursor_tx xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
  cursor_row bigint NOT NULL DEFAULT 0,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  user_id uuid,
  CONSTRAINT outbound_webhooks_addressed CHECK ((((format = 'mail'::text) = (envelope IS NULL)) AND ((format = 'mail'::text) = (shown_url IS NULL)))),
  CONSTRAINT outbound_webhooks_disabled_reasoned CHECK (((status = 'disabled'::text) = (disabled_reason IS NOT NULL))),
  CONSTRAINT outbound_webhooks_format_known CHECK ((format = ANY (ARRAY['standard'::text, 'slack'::text, 'discord'::text, 'mail'::text]))),
  CONSTRAINT outbound_webhooks_owned CHECK (((project_id IS NULL) <> (user_id IS NULL))),
  CONSTRAINT outbound_webhooks_pkey PRIMARY KEY (id),
  CONSTRAINT outbound_webhooks_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT outbound_webhooks_reason_known CHECK ((disabled_reason = ANY (ARRAY['requested'::text, 'gone'::text, 'failing'::text, 'backlog'::text]))),
  CONSTRAINT outbound_webhooks_status_known CHECK ((status = ANY (ARRAY['enabled'::text, 'disabled'::text]))),
  CONSTRAINT outbound_webhooks_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE INDEX outbound_webhooks_project_idx ON public.outbound_webhooks USING btree (project_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX outbound_webhooks_user_key ON public.outbound_webhooks USING btree (user_id, ((format = 'mail'::text))) WHERE (user_id IS NOT NULL);

CREATE TABLE outbox (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  actor_kind text NOT NULL,
  actor_id uuid NOT NULL,
  command jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  last_error text,
  failed_at timestamp with time zone,
  CONSTRAINT outbox_actor_kind_known CHECK ((actor_kind = ANY (ARRAY['session'::text, 'sandbox'::text, 'change_request'::text, 'conversation'::text, 'environment_build'::text]))),
  CONSTRAINT outbox_pkey PRIMARY KEY (id)
);
CREATE INDEX outbox_actor_idx ON public.outbox USING btree (actor_kind, actor_id, id);

CREATE TABLE own_notices_place (
  is_only boolean NOT NULL DEFAULT true,
  tx xid8 NOT NULL,
  id bigint NOT NULL,
  CONSTRAINT own_notices_place_pkey PRIMARY KEY (is_only),
  CONSTRAINT own_notices_place_single CHECK (is_only)
);

CREATE TABLE previews (
  hash text NOT NULL,
  token_id uuid NOT NULL,
  session_id uuid NOT NULL,
  sandbox_id uuid NOT NULL,
  port integer NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  opened_at timestamp with time zone,
  CONSTRAINT previews_pkey PRIMARY KEY (hash),
  CONSTRAINT previews_port_known CHECK (((port >= 1) AND (port <= 65535))),
  CONSTRAINT previews_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes(id) ON DELETE CASCADE,
  CONSTRAINT previews_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id) ON DELETE CASCADE,
  CONSTRAINT previews_token_fkey FOREIGN KEY (token_id) REFERENCES tokens(id) ON DELETE CASCADE
);
CREATE INDEX previews_expiry_idx ON public.previews USING btree (expires_at);
CREATE INDEX previews_session_idx ON public.previews USING btree (session_id, created_at DESC, hash);

CREATE TABLE project_credentials (
  project_id uuid NOT NULL,
  envelope bytea NOT NULL,
  CONSTRAINT project_credentials_pkey PRIMARY KEY (project_id),
  CONSTRAINT project_credentials_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);

CREATE TABLE project_manifests (
  project_id uuid NOT NULL,
  read_commit text,
  synced_at timestamp with time zone NOT NULL,
  error text,
  commit_sha text,
  text text,
  agents text[] NOT NULL DEFAULT '{}'::text[],
  error_path text,
  error_line integer,
  brings_model boolean,
  environment jsonb,
  CONSTRAINT project_manifests_good_reading_whole CHECK (((commit_sha IS NULL) = (text IS NULL))),
  CONSTRAINT project_manifests_pkey PRIMARY KEY (project_id),
  CONSTRAINT project_manifests_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);

CREATE TABLE project_members (
  project_id uuid NOT NULL,
  user_id uuid NOT NULL,
  role text NOT NULL,
  granted_at timestamp with time zone NOT NULL,
  CONSTRAINT project_members_pkey PRIMARY KEY (project_id, user_id),
  CONSTRAINT project_members_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT project_members_role_known CHECK ((role = ANY (ARRAY['viewer'::text, 'member'::text, 'owner'::text]))),
  CONSTRAINT project_members_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE INDEX project_members_user_idx ON public.project_members USING btree (user_id);

CREATE TABLE project_secrets (
  project_id uuid NOT NULL,
  name text NOT NULL,
  version integer NOT NULL,
  envelope bytea,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  updated_by uuid,
  previous_envelope bytea,
  previous_version integer,
  previous_until timestamp with time zone,
  service boolean NOT NULL DEFAULT false,
  CONSTRAINT project_secrets_pkey PRIMARY KEY (project_id, name),
  CONSTRAINT project_secrets_previous_whole CHECK (((num_nonnulls(previous_envelope, previous_version, previous_until) = ANY (ARRAY[0, 3])) AND ((previous_envelope IS NULL) OR (envelope IS NOT NULL)))),
  CONSTRAINT project_secrets_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT project_secrets_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES users(id),
  CONSTRAINT project_secrets_version_positive CHECK ((version > 0))
);
CREATE INDEX project_secrets_previous_idx ON public.project_secrets USING btree (previous_until) WHERE (previous_until IS NOT NULL);

CREATE TABLE project_sessions (
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
  origin text NOT NULL,
  failure jsonb,
  failed_at timestamp with time zone,
  stop_reason text,
  provisioned_at timestamp with time zone NOT NULL,
  boot_deadline_at timestamp with time zone NOT NULL,
  bootstrap_accepted_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  running_at timestamp with time zone,
  stopped_at timestamp with time zone,
  deleted_at timestamp with time zone,
  saved jsonb,
  last_turn jsonb,
  parent_session_id uuid,
  restore_saved boolean NOT NULL DEFAULT false,
  restored jsonb,
  unsaved jsonb,
  changes jsonb,
  first_message jsonb,
  archived_at timestamp with time zone,
  seen_before timestamp with time zone,
  CONSTRAINT project_sessions_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT project_sessions_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id),
  CONSTRAINT project_sessions_failed_has_reason CHECK (((status <> 'failed'::project_session_status) OR (failure IS NOT NULL))),
  CONSTRAINT project_sessions_failure_dated CHECK (((failure IS NULL) = (failed_at IS NULL))),
  CONSTRAINT project_sessions_origin_known CHECK ((origin = ANY (ARRAY['session'::text, 'trigger'::text]))),
  CONSTRAINT project_sessions_parent_fkey FOREIGN KEY (parent_session_id) REFERENCES project_sessions(id),
  CONSTRAINT project_sessions_pkey PRIMARY KEY (id),
  CONSTRAINT project_sessions_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  CONSTRAINT project_sessions_status_written CHECK ((status <> ALL (ARRAY['queued'::project_session_status, 'branching'::project_session_status, 'completed'::project_session_status]))),
  CONSTRAINT project_sessions_stop_reason_known CHECK ((stop_reason = ANY (ARRAY['requested'::text, 'idle'::text, 'made_room'::text, 'outdated'::text, 'deleted'::text, 'user_deactivated'::text])))
);
CREATE INDEX project_sessions_account_idx ON public.project_sessions USING btree (account_id, created_at DESC, id DESC) WHERE (deleted_at IS NULL);
CREATE INDEX project_sessions_asked ON public.project_sessions USING btree (account_id, project_id) WHERE ((status = 'stopped'::project_session_status) AND ((state_context ->> 'asked'::text) IS NOT NULL));
CREATE UNIQUE INDEX project_sessions_fire_key ON public.project_sessions USING btree (fire_id);
CREATE INDEX project_sessions_list_idx ON public.project_sessions USING btree (project_id, created_at DESC, id DESC) WHERE (deleted_at IS NULL);
CREATE INDEX project_sessions_live_idx ON public.project_sessions USING btree (account_id) WHERE (status = ANY (ARRAY['provisioning'::project_session_status, 'running'::project_session_status]));
CREATE INDEX project_sessions_parent_idx ON public.project_sessions USING btree (parent_session_id, created_at DESC, id DESC) WHERE (parent_session_id IS NOT NULL);

CREATE TABLE project_trigger_runtime (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  last_fired_at timestamp with time zone NOT NULL,
  CONSTRAINT project_trigger_runtime_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT project_trigger_runtime_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);

CREATE TABLE project_usage (
  project_id uuid NOT NULL,
  day date NOT NULL,
  model text NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  cost_usd numeric NOT NULL,
  CONSTRAINT project_usage_pkey PRIMARY KEY (project_id, day, model),
  CONSTRAINT project_usage_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);

CREATE TABLE projects (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  name text NOT NULL,
  status text NOT NULL DEFAULT 'active'::text,
  repository jsonb NOT NULL,
  default_branch text NOT NULL,
  triggers_paused boolean NOT NULL DEFAULT false,
  secrets_revision integer NOT NULL DEFAULT 0,
  change_requests integer NOT NULL DEFAULT 0,
  drained_turn bigint NOT NULL DEFAULT 0,
  created_by uuid NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  changed_tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  node_id text,
  default_role text,
  merge_role text NOT NULL,
  approvals_required integer NOT NULL DEFAULT 0,
  deletes_at timestamp with time zone,
  former_status text,
  name_key text NOT NULL,
  CONSTRAINT projects_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT projects_approvals_required_known CHECK (((approvals_required >= 0) AND (approvals_required <= 10))),
  CONSTRAINT projects_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id),
  CONSTRAINT projects_default_role_known CHECK ((default_role = ANY (ARRAY['viewer'::text, 'member'::text]))),
  CONSTRAINT projects_deletion_whole CHECK ((num_nonnulls(deletes_at, former_status) =
CASE
    WHEN (status = 'deleted'::text) THEN 2
    ELSE 0
END)),
  CONSTRAINT projects_former_status_known CHECK ((former_status = ANY (ARRAY['active'::text, 'archived'::text]))),
  CONSTRAINT projects_merge_role_known CHECK ((merge_role = ANY (ARRAY['member'::text, 'owner'::text]))),
  CONSTRAINT projects_pkey PRIMARY KEY (id),
  CONSTRAINT projects_status_known CHECK ((status = ANY (ARRAY['active'::text, 'archived'::text, 'deleted'::text])))
);
CREATE INDEX projects_account_idx ON public.projects USING btree (account_id, created_at DESC, id DESC);
CREATE INDEX projects_changed_idx ON public.projects USING btree (changed_tx);
CREATE INDEX projects_deletion_idx ON public.projects USING btree (deletes_at) WHERE (deletes_at IS NOT NULL);
CREATE UNIQUE INDEX projects_name_key ON public.projects USING btree (account_id, name_key);

CREATE TABLE schema_migrations (
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT schema_migrations_pkey PRIMARY KEY (name)
);

CREATE TABLE session_logs (
  sandbox_id uuid NOT NULL,
  session_id uuid NOT NULL,
  text bytea NOT NULL,
  kept_at timestamp with time zone NOT NULL,
  CONSTRAINT session_logs_bounded CHECK ((octet_length(text) <= 1048576)),
  CONSTRAINT session_logs_pkey PRIMARY KEY (sandbox_id),
  CONSTRAINT session_logs_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes(id),
  CONSTRAINT session_logs_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id)
);
CREATE INDEX session_logs_session_idx ON public.session_logs USING btree (session_id);

CREATE TABLE session_reads (
  session_id uuid NOT NULL,
  user_id uuid NOT NULL,
  seen_at timestamp with time zone NOT NULL,
  CONSTRAINT session_reads_pkey PRIMARY KEY (session_id, user_id),
  CONSTRAINT session_reads_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id) ON DELETE CASCADE,
  CONSTRAINT session_reads_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);

CREATE TABLE session_sandboxes (
  id uuid NOT NULL,
  session_id uuid NOT NULL,
  provider text NOT NULL,
  node_id text NOT NULL,
  status session_sandbox_status NOT NULL,
  version integer NOT NULL DEFAULT 1,
  state_context jsonb NOT NULL,
  failure jsonb,
  boot_deadline_at timestamp with time zone NOT NULL,
  created_at timestamp with time zone NOT NULL,
  active_at timestamp with time zone,
  ended_at timestamp with time zone,
  secrets_revision integer,
  secret_versions jsonb,
  boot_started_at timestamp with time zone,
  image text,
  environment_build_id uuid,
  environment_is_stale boolean NOT NULL DEFAULT false,
  warm_recipe text,
  CONSTRAINT session_sandboxes_end_dated CHECK (((status = ANY (ARRAY['provisioning'::session_sandbox_status, 'active'::session_sandbox_status])) = (ended_at IS NULL))),
  CONSTRAINT session_sandboxes_environment_build_fkey FOREIGN KEY (environment_build_id) REFERENCES environment_builds(id) ON DELETE SET NULL,
  CONSTRAINT session_sandboxes_error_has_reason CHECK (((status <> 'error'::session_sandbox_status) OR (failure IS NOT NULL))),
  CONSTRAINT session_sandboxes_pkey PRIMARY KEY (id),
  CONSTRAINT session_sandboxes_secrets_whole CHECK (((secrets_revision IS NULL) = (secret_versions IS NULL))),
  CONSTRAINT session_sandboxes_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id)
);
CREATE INDEX session_sandboxes_environment_build_idx ON public.session_sandboxes USING btree (environment_build_id) WHERE (environment_build_id IS NOT NULL);
CREATE UNIQUE INDEX session_sandboxes_live_key ON public.session_sandboxes USING btree (session_id) WHERE (status = ANY (ARRAY['provisioning'::session_sandbox_status, 'active'::session_sandbox_status]));
CREATE INDEX session_sandboxes_session_idx ON public.session_sandboxes USING btree (session_id, created_at DESC, id DESC);

CREATE TABLE settings (
  key text NOT NULL,
  value text NOT NULL,
  CONSTRAINT settings_pkey PRIMARY KEY (key)
);

CREATE TABLE sign_in_links (
  hash text NOT NULL,
  token_id uuid NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT sign_in_links_pkey PRIMARY KEY (hash),
  CONSTRAINT sign_in_links_token_fkey FOREIGN KEY (token_id) REFERENCES tokens(id) ON DELETE CASCADE
);
CREATE INDEX sign_in_links_token_idx ON public.sign_in_links USING btree (token_id, created_at DESC, hash);

CREATE TABLE spend (
  account_id uuid NOT NULL,
  scope text NOT NULL,
  subject text NOT NULL,
  period text NOT NULL,
  tokens bigint NOT NULL,
  cost bigint NOT NULL,
  noted_amount bigint,
  CONSTRAINT spend_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT spend_pkey PRIMARY KEY (account_id, period, scope, subject),
  CONSTRAINT spend_scope_known CHECK ((scope = ANY (ARRAY['session'::text, 'trigger'::text, 'person'::text, 'project'::text, 'account'::text])))
);

CREATE TABLE spend_limits (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  project_id uuid,
  scope text NOT NULL,
  subject text NOT NULL,
  unit text NOT NULL,
  amount bigint NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT spend_limits_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT spend_limits_amount_positive CHECK ((amount > 0)),
  CONSTRAINT spend_limits_pkey PRIMARY KEY (id),
  CONSTRAINT spend_limits_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT spend_limits_scope_known CHECK ((scope = ANY (ARRAY['session'::text, 'each_session'::text, 'trigger'::text, 'person'::text, 'project'::text, 'account'::text]))),
  CONSTRAINT spend_limits_unit_known CHECK ((unit = ANY (ARRAY['usd'::text, 'tokens'::text])))
);
CREATE INDEX spend_limits_project_idx ON public.spend_limits USING btree (project_id);
CREATE UNIQUE INDEX spend_limits_subject_key ON public.spend_limits USING btree (account_id, scope, subject);

CREATE TABLE spend_reservations (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  counts text[] NOT NULL,
  tokens bigint NOT NULL,
  cost bigint NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  session_id uuid NOT NULL,
  model text NOT NULL,
  is_own boolean NOT NULL,
  CONSTRAINT spend_reservations_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT spend_reservations_pkey PRIMARY KEY (id),
  CONSTRAINT spend_reservations_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id) ON DELETE CASCADE
);
CREATE INDEX spend_reservations_account_idx ON public.spend_reservations USING btree (account_id);
CREATE INDEX spend_reservations_expires_idx ON public.spend_reservations USING btree (expires_at);
CREATE INDEX spend_reservations_session_idx ON public.spend_reservations USING btree (session_id);

CREATE TABLE subscriptions (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  user_id uuid NOT NULL,
  runtime text NOT NULL,
  sealed_version integer NOT NULL,
  envelope bytea NOT NULL,
  saved_at timestamp with time zone NOT NULL,
  renewed_at timestamp with time zone,
  used_at timestamp with time zone,
  CONSTRAINT subscriptions_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT subscriptions_pkey PRIMARY KEY (id),
  CONSTRAINT subscriptions_runtime_key UNIQUE (user_id, runtime),
  CONSTRAINT subscriptions_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);

CREATE TABLE suspended_credentials (
  session_id uuid NOT NULL,
  user_id uuid NOT NULL,
  act text NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT suspended_credentials_act_known CHECK ((act = ANY (ARRAY['message'::text, 'answer'::text, 'restart'::text, 'terminal'::text, 'runtime'::text, 'port'::text, 'push'::text]))),
  CONSTRAINT suspended_credentials_pkey PRIMARY KEY (session_id),
  CONSTRAINT suspended_credentials_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id) ON DELETE CASCADE,
  CONSTRAINT suspended_credentials_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE INDEX suspended_credentials_user_idx ON public.suspended_credentials USING btree (user_id);

CREATE TABLE tokens (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  user_id uuid NOT NULL,
  project_id uuid,
  session_id uuid,
  sandbox_id uuid,
  kind text NOT NULL,
  origin text NOT NULL,
  name text NOT NULL,
  hash text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  opened_by uuid,
  address text,
  user_agent text,
  identity_id uuid,
  CONSTRAINT tokens_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT tokens_browser_whole CHECK (
CASE
    WHEN (kind = 'browser'::text) THEN ((origin = 'user'::text) AND (sandbox_id IS NULL) AND (expires_at IS NOT NULL) AND ((opened_by IS NULL) <> (identity_id IS NULL)))
    ELSE ((opened_by IS NULL) AND (identity_id IS NULL) AND (address IS NULL) AND (user_agent IS NULL))
END),
  CONSTRAINT tokens_hash_key UNIQUE (hash),
  CONSTRAINT tokens_identity_fkey FOREIGN KEY (identity_id) REFERENCES identities(id),
  CONSTRAINT tokens_kind_known CHECK ((kind = ANY (ARRAY['access'::text, 'sandbox'::text, 'browser'::text]))),
  CONSTRAINT tokens_opened_by_fkey FOREIGN KEY (opened_by) REFERENCES tokens(id),
  CONSTRAINT tokens_origin_known CHECK ((origin = ANY (ARRAY['user'::text, 'session'::text, 'trigger'::text]))),
  CONSTRAINT tokens_pkey PRIMARY KEY (id),
  CONSTRAINT tokens_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  CONSTRAINT tokens_sandbox_bound CHECK (((sandbox_id IS NULL) OR (project_id IS NOT NULL))),
  CONSTRAINT tokens_sandbox_fkey FOREIGN KEY (sandbox_id) REFERENCES session_sandboxes(id),
  CONSTRAINT tokens_sandbox_whole CHECK (((session_id IS NULL) = (sandbox_id IS NULL))),
  CONSTRAINT tokens_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id),
  CONSTRAINT tokens_user_fkey FOREIGN KEY (user_id) REFERENCES users(id)
);
CREATE INDEX tokens_account_idx ON public.tokens USING btree (account_id, created_at DESC, id DESC) WHERE ((sandbox_id IS NULL) AND (revoked_at IS NULL));
CREATE INDEX tokens_browser_idx ON public.tokens USING btree (user_id, created_at DESC, id DESC) WHERE (kind = 'browser'::text);
CREATE INDEX tokens_identity_idx ON public.tokens USING btree (identity_id) WHERE (identity_id IS NOT NULL);
CREATE INDEX tokens_opened_by_idx ON public.tokens USING btree (opened_by) WHERE (opened_by IS NOT NULL);
CREATE INDEX tokens_sandbox_idx ON public.tokens USING btree (sandbox_id) WHERE (sandbox_id IS NOT NULL);
CREATE INDEX tokens_session_idx ON public.tokens USING btree (session_id) WHERE (session_id IS NOT NULL);

CREATE TABLE transitions (
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  number bigint NOT NULL,
  at timestamp with time zone NOT NULL,
  event text NOT NULL,
  from_state text,
  to_state text NOT NULL,
  detail text,
  commands text[] NOT NULL,
  CONSTRAINT transitions_actor_kind_known CHECK ((actor_kind = ANY (ARRAY['session'::text, 'sandbox'::text, 'conversation'::text, 'change_request'::text, 'trigger'::text, 'account'::text, 'environment_build'::text]))),
  CONSTRAINT transitions_detail_short CHECK ((char_length(detail) <= 500)),
  CONSTRAINT transitions_pkey PRIMARY KEY (actor_kind, actor_id, number)
);
CREATE INDEX transitions_at_idx ON public.transitions USING brin (at);

CREATE TABLE trigger_cursors (
  project_id uuid NOT NULL,
  slug text NOT NULL,
  schedule text NOT NULL,
  accounted_until timestamp with time zone NOT NULL,
  CONSTRAINT trigger_cursors_pkey PRIMARY KEY (project_id, slug),
  CONSTRAINT trigger_cursors_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);

CREATE TABLE uploads (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  created_by uuid NOT NULL,
  name text NOT NULL,
  media_type text NOT NULL,
  sha256 text NOT NULL,
  content bytea NOT NULL,
  fire_id uuid,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT uploads_bounded CHECK ((octet_length(content) <= 10485760)),
  CONSTRAINT uploads_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id),
  CONSTRAINT uploads_pkey PRIMARY KEY (id),
  CONSTRAINT uploads_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX uploads_expires_idx ON public.uploads USING btree (expires_at);
CREATE INDEX uploads_fire_idx ON public.uploads USING btree (fire_id) WHERE (fire_id IS NOT NULL);
CREATE INDEX uploads_project_idx ON public.uploads USING btree (project_id, created_by);

CREATE TABLE users (
  id uuid NOT NULL,
  account_id uuid NOT NULL,
  name text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  role text NOT NULL,
  deactivated_at timestamp with time zone,
  code_misses integer NOT NULL DEFAULT 0,
  code_misses_since timestamp with time zone,
  signed_in_at timestamp with time zone,
  activity_seen_at timestamp with time zone,
  CONSTRAINT users_account_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT users_pkey PRIMARY KEY (id),
  CONSTRAINT users_role_known CHECK ((role = ANY (ARRAY['member'::text, 'owner'::text])))
);
CREATE INDEX users_account_idx ON public.users USING btree (account_id);

CREATE TABLE warm_sandboxes (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  node_id text NOT NULL,
  recipe text,
  secrets_revision integer,
  secret_versions jsonb,
  wanted_until timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  session_id uuid,
  claimed_at timestamp with time zone,
  wanted_by text NOT NULL,
  CONSTRAINT warm_sandboxes_claim_whole CHECK ((num_nonnulls(session_id, claimed_at) = ANY (ARRAY[0, 2]))),
  CONSTRAINT warm_sandboxes_claimed_ready CHECK (((session_id IS NULL) OR (recipe IS NOT NULL))),
  CONSTRAINT warm_sandboxes_pkey PRIMARY KEY (id),
  CONSTRAINT warm_sandboxes_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  CONSTRAINT warm_sandboxes_ready_whole CHECK ((num_nonnulls(recipe, secrets_revision, secret_versions) = ANY (ARRAY[0, 3]))),
  CONSTRAINT warm_sandboxes_session_fkey FOREIGN KEY (session_id) REFERENCES project_sessions(id) ON DELETE CASCADE,
  CONSTRAINT warm_sandboxes_session_unique UNIQUE (session_id),
  CONSTRAINT warm_sandboxes_wanted_by_check CHECK ((wanted_by = ANY (ARRAY['manifest'::text, 'person'::text, 'trigger'::text]))),
  CONSTRAINT warm_sandboxes_wanted_whole CHECK (((wanted_by = 'manifest'::text) = (wanted_until IS NULL)))
);
CREATE INDEX warm_sandboxes_node_idx ON public.warm_sandboxes USING btree (node_id);
CREATE INDEX warm_sandboxes_project_idx ON public.warm_sandboxes USING btree (project_id);

CREATE TABLE webhook_refusals (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  at timestamp with time zone NOT NULL,
  slug text NOT NULL,
  status integer NOT NULL,
  code text NOT NULL,
  reason text NOT NULL,
  delivery_id text,
  event text,
  declared_bytes bigint,
  body_bytes bigint,
  address text NOT NULL,
  forwarded_for text,
  CONSTRAINT webhook_refusals_pkey PRIMARY KEY (id),
  CONSTRAINT webhook_refusals_project_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);
CREATE INDEX webhook_refusals_at_idx ON public.webhook_refusals USING btree (at);
CREATE INDEX webhook_refusals_project_idx ON public.webhook_refusals USING btree (project_id, at DESC, id DESC);

CREATE OR REPLACE FUNCTION public.audit_events_refuse_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  RAISE EXCEPTION 'rows of audit_events are never changed';
END;
$function$;

CREATE OR REPLACE FUNCTION public.executor_room(wanted_project uuid, wanted_connector text, wanted_session uuid, rows_since timestamp with time zone, rows_max integer, open_since timestamp with time zone, open_max integer)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.message_words(record jsonb)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT CASE WHEN record ->> 'parentId' IS NOT NULL THEN ''::tsvector ELSE to_tsvector('simple'::regconfig, translate(
    left((SELECT string_agg(part.value ->> 'text', '' ORDER BY part.ordinality)
      FROM jsonb_array_elements(record -> 'content') WITH ORDINALITY AS part), 20000),
    '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))) END
$function$;

CREATE TRIGGER audit_events_fixed BEFORE UPDATE ON public.audit_events FOR EACH ROW EXECUTE FUNCTION audit_events_refuse_update();
