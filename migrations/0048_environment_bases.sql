-- The base images of builds, and what their tags stand for now (docs/decisions/0079-base-images.md). A build whose base image has
-- changed since is made again.
--
-- Operators: builds from before this migration name no base images. The next build of each project does.

-- References with the digest at the build: [{"reference": …, "digest": …}]. A digest is null if the registry did not answer.
ALTER TABLE environment_builds ADD COLUMN bases jsonb NOT NULL DEFAULT '[]';

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
