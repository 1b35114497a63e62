-- What happened, for live readers (api.md 1 "Live data"). Written in the state's own transaction.
--
-- Readers go by (tx, id) and see only rows whose transaction is older than the oldest one still running, so a later
-- commit cannot appear behind what a reader has seen. event_horizons remembers up to where a project was pruned: a
-- reader from before that is told to start anew.
-- Operators: a long writing transaction holds all readers back, also one in another database of the same server.
-- Transaction ids belong to one server. After a dump is loaded into another server the service removes at its
-- start the events that would lie in that server's future.

CREATE TABLE events (
  tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  id bigint GENERATED ALWAYS AS IDENTITY,
  project_id uuid NOT NULL,
  session_id uuid,
  type text NOT NULL,
  at timestamptz NOT NULL,
  data jsonb NOT NULL,
  CONSTRAINT events_pkey PRIMARY KEY (tx, id),
  CONSTRAINT events_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE INDEX events_project_idx ON events (project_id, tx, id);
CREATE INDEX events_at_idx ON events (at);

CREATE TABLE event_horizons (
  project_id uuid NOT NULL,
  tx xid8 NOT NULL,
  id bigint NOT NULL,
  CONSTRAINT event_horizons_pkey PRIMARY KEY (project_id),
  CONSTRAINT event_horizons_project_fkey FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE
);
