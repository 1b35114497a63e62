-- What the webhook receiver turned away, for the people of the project: a sender only learns a status.
--
-- Neither bodies nor signatures are kept. The newest 500 rows of a project stay, for 7 days. Rows are gathered in memory
-- and written in batches, and a flood is cut off there, so there may be fewer rows than refusals.

CREATE TABLE webhook_refusals (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  at timestamptz NOT NULL,
  -- As the sender wrote it, cut: it need not be a trigger's.
  slug text NOT NULL,
  status integer NOT NULL,
  -- The code of the answer, and the reason that the sender is not told.
  code text NOT NULL,
  reason text NOT NULL,
  delivery_id text,
  event text,
  -- What Content-Length said, and what was received; null: nothing was read.
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
