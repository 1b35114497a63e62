-- With a sign-in provider, a person's tokens need a sign-in from time to time, and people list and remove the identities that
-- providers gave them. So a person has the instant from which that time counts, an identity has an id and the name that its
-- provider shows, and a browser's session knows the identity that began it.
--
-- Operators: browsers that signed in at a provider sign in again after this upgrade, once. Tokens go on working: the time begins at
-- the first start with a provider.
ALTER TABLE users
  -- Null: only the person's beginning counts.
  ADD COLUMN signed_in_at timestamptz;

ALTER TABLE identities
  ADD COLUMN id uuid,
  ADD COLUMN name text,
  ADD COLUMN signed_in_at timestamptz;
UPDATE identities SET id = gen_random_uuid(), name = users.name FROM users WHERE users.id = identities.user_id;
ALTER TABLE identities
  ALTER COLUMN id SET NOT NULL,
  ALTER COLUMN name SET NOT NULL,
  ADD CONSTRAINT identities_id_unique UNIQUE (id);

DELETE FROM tokens WHERE kind = 'browser' AND opened_by IS NULL;
ALTER TABLE tokens
  ADD COLUMN identity_id uuid,
  ADD CONSTRAINT tokens_identity_fkey FOREIGN KEY (identity_id) REFERENCES identities (id),
  DROP CONSTRAINT tokens_browser_whole,
  ADD CONSTRAINT tokens_browser_whole CHECK (
    CASE WHEN kind = 'browser' THEN origin = 'user' AND sandbox_id IS NULL AND expires_at IS NOT NULL
      AND (opened_by IS NULL) <> (identity_id IS NULL)
    ELSE opened_by IS NULL AND identity_id IS NULL AND address IS NULL AND user_agent IS NULL END
  );
-- For the removal of an identity, with the sessions that it began.
CREATE INDEX tokens_identity_idx ON tokens (identity_id) WHERE identity_id IS NOT NULL;
