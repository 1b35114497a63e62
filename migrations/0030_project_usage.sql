-- Tokens and cost of a project's agents, by day and model. A conversation's sums end with its session; these stay, because
-- the money was spent. Written in the transaction that writes the report of the sandbox, under the conversation's lock.
--
-- Operators: stop all nodes before the upgrade. Work from before the upgrade is not counted here.

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
