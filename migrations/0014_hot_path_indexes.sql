-- Fewer index entries and foreign-key checks for each webhook: they were two thirds of what its commit cost the database
-- (`npm run bench:webhook`).
--
-- Instants by which rows are only pruned rise with the rows' places: ranges of blocks say enough (BRIN). Rows of the queue
-- are written and removed with what they refer to, under the account's lock; an account is the one of its project; an event
-- is written with the row that it is about, and gone in a day.

-- Newest first within a project serves every reader; a transaction's events are of few projects.
ALTER TABLE events DROP CONSTRAINT events_pkey;
DROP INDEX events_project_idx;
DROP INDEX events_at_idx;
ALTER TABLE events DROP CONSTRAINT events_project_fkey;
ALTER TABLE events ADD CONSTRAINT events_pkey PRIMARY KEY (project_id, tx, id);
CREATE INDEX events_at_idx ON events USING brin (at);

ALTER TABLE fires DROP CONSTRAINT fires_account_fkey;
-- The delivery id first: it alone is nearly unique.
DROP INDEX fires_delivery_key;
CREATE UNIQUE INDEX fires_delivery_key ON fires (delivery_id, project_id, trigger_slug) WHERE answers_delivery;
-- Rows come in the order of these two, so that an index that rises takes them at its end; read backwards it serves as well.
DROP INDEX fires_project_idx;
DROP INDEX fires_trigger_idx;
CREATE INDEX fires_project_idx ON fires (project_id, received_at, id);
CREATE INDEX fires_trigger_idx ON fires (project_id, trigger_slug, received_at, id);
CREATE INDEX fires_received_idx ON fires USING brin (received_at);
-- What neither fired nor waits, newest first: most rows fired, and what waits is in the queue.
CREATE INDEX fires_ended_idx ON fires (project_id, status, received_at, id)
  WHERE status NOT IN ('fired', 'queued');

ALTER TABLE fire_queue DROP CONSTRAINT fire_queue_fire_fkey;
CREATE INDEX fire_queue_expiry_idx ON fire_queue (expires_at);
