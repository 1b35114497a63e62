-- A person's own credential works in her session while she alone steers it. A row says who else steered the session first, and how, since
-- she last gave the credential back. Sessions from before this change have none.

CREATE TABLE suspended_credentials (
  session_id uuid NOT NULL CONSTRAINT suspended_credentials_pkey PRIMARY KEY
    CONSTRAINT suspended_credentials_session_fkey REFERENCES project_sessions (id) ON DELETE CASCADE,
  user_id uuid NOT NULL CONSTRAINT suspended_credentials_user_fkey REFERENCES users (id),
  act text NOT NULL CONSTRAINT suspended_credentials_act_known
    CHECK (act IN ('message', 'answer', 'restart', 'terminal', 'runtime', 'port')),
  at timestamptz NOT NULL
);
CREATE INDEX suspended_credentials_user_idx ON suspended_credentials (user_id);
