-- A changed secret is sent to the project's running sessions (api.md 5). What each sandbox was last given stands here, so
-- that a crash between a change and its delivery loses nothing: whatever differs from the project's set is sent.
--
-- Of sandboxes that were started before this, nothing is known: null, and they are left as they are until their session's
-- next boot, since their daemons do not take changes either.
ALTER TABLE session_sandboxes
  ADD COLUMN secrets_revision integer,
  -- The version of each secret by its name; no value.
  ADD COLUMN secret_versions jsonb,
  ADD CONSTRAINT session_sandboxes_secrets_whole CHECK ((secrets_revision IS NULL) = (secret_versions IS NULL));
