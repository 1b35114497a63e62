-- Projects and persons have providers of models of their own, and each call of a model is counted once: every call has a reservation, which
-- its count ends. Existing providers stay their account's. Calls that were under way at the upgrade are not counted.

ALTER TABLE model_providers
  -- Null for a provider of the account or of a person.
  ADD COLUMN project_id uuid CONSTRAINT model_providers_project_fkey REFERENCES projects (id) ON DELETE CASCADE,
  -- The person whose own it is.
  ADD COLUMN user_id uuid CONSTRAINT model_providers_user_fkey REFERENCES users (id),
  -- The last call that the provider refused, in its words, if none succeeded since.
  ADD COLUMN refused_at timestamptz,
  ADD COLUMN refusal text,
  ADD CONSTRAINT model_providers_one_owner CHECK (project_id IS NULL OR user_id IS NULL);
DROP INDEX model_providers_name_key;
CREATE UNIQUE INDEX model_providers_name_key ON model_providers (account_id, project_id, user_id, name) NULLS NOT DISTINCT;
CREATE INDEX model_providers_project_idx ON model_providers (project_id);
CREATE INDEX model_providers_user_idx ON model_providers (user_id);

DELETE FROM spend_reservations;
DROP INDEX spend_reservations_account_idx;
ALTER TABLE spend_reservations
  ADD COLUMN session_id uuid NOT NULL CONSTRAINT spend_reservations_session_fkey REFERENCES project_sessions (id) ON DELETE CASCADE,
  -- `provider/model`, for a call that is counted as its estimate.
  ADD COLUMN model text NOT NULL,
  -- Whether a person pays for it with her own provider.
  ADD COLUMN is_own boolean NOT NULL;
CREATE INDEX spend_reservations_account_idx ON spend_reservations (account_id);
CREATE INDEX spend_reservations_session_idx ON spend_reservations (session_id);
CREATE INDEX spend_reservations_expires_idx ON spend_reservations (expires_at);
