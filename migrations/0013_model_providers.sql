-- An account names providers of models. Their keys stay in the service, and it counts the tokens of the calls that it passes on for
-- sandboxes. Existing accounts have none, and nothing changes for them.

CREATE TABLE model_providers (
  id uuid CONSTRAINT model_providers_pkey PRIMARY KEY,
  account_id uuid NOT NULL CONSTRAINT model_providers_account_fkey REFERENCES accounts (id),
  name text NOT NULL,
  kind text NOT NULL CONSTRAINT model_providers_kind_known CHECK (kind IN ('anthropic', 'openai', 'openai-compatible', 'gemini')),
  base_url text NOT NULL,
  models text[] NOT NULL,
  sealed_version integer NOT NULL,
  envelope bytea NOT NULL,
  has_key boolean NOT NULL,
  tried_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX model_providers_name_key ON model_providers (account_id, name);

CREATE TABLE model_usage (
  session_id uuid NOT NULL CONSTRAINT model_usage_session_fkey REFERENCES project_sessions (id),
  day date NOT NULL,
  model text NOT NULL,
  project_id uuid NOT NULL CONSTRAINT model_usage_project_fkey REFERENCES projects (id) ON DELETE CASCADE,
  calls bigint NOT NULL,
  untold_calls bigint NOT NULL,
  input_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  CONSTRAINT model_usage_pkey PRIMARY KEY (session_id, day, model)
);
CREATE INDEX model_usage_project_idx ON model_usage (project_id, day);
