-- While a signing secret is rotated, its previous value goes on verifying webhooks until an instant.
--
-- previous_envelope is the envelope of version previous_version, moved here as it was: it is bound to project, name and
-- that version. It verifies webhooks and is never injected into a sandbox. It is removed after its time, by the next write
-- of the secret, and by its deletion. fires.verified_with says which of the two values verified a webhook.

ALTER TABLE project_secrets
  ADD COLUMN previous_envelope bytea,
  ADD COLUMN previous_version integer,
  ADD COLUMN previous_until timestamptz,
  ADD CONSTRAINT project_secrets_previous_whole CHECK (
    num_nonnulls(previous_envelope, previous_version, previous_until) IN (0, 3)
    AND (previous_envelope IS NULL OR envelope IS NOT NULL)
  );

CREATE INDEX project_secrets_previous_idx ON project_secrets (previous_until) WHERE previous_until IS NOT NULL;

ALTER TABLE fires
  ADD COLUMN verified_with text,
  ADD CONSTRAINT fires_verified_with_known CHECK (verified_with IN ('current', 'previous'));
