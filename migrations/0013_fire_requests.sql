-- What a fire came with, for looking at it and for firing it again (api.md 4 "Ledger"): the body of a webhook or of a fire
-- by hand, and the three headers that templates know. 2 GiB an account; the oldest go first, and a fire's go with its row.
--
-- The counters of an account move in the transactions that move what they count: counting rows instead takes as long as
-- the queue is.

CREATE TABLE fire_requests (
  fire_id uuid NOT NULL,
  account_id uuid NOT NULL,
  body bytea NOT NULL,
  -- How the body lies here: `identity`, or `deflate` (RFC 1951) where that is smaller.
  encoding text NOT NULL,
  -- content_type, user_agent and forwarded_for of a webhook; null for a fire by hand.
  headers jsonb,
  -- Ids rise with time: this is also the order in which an account's are pruned. Written with the fire's row and removed
  -- before it; a foreign key would be checked once a webhook.
  CONSTRAINT fire_requests_pkey PRIMARY KEY (account_id, fire_id),
  CONSTRAINT fire_requests_encoding_known CHECK (encoding IN ('identity', 'deflate'))
);

-- A cron fire that waits keeps its template: it is rendered when it fires, since its prompt names the fire before it.
ALTER TABLE fire_queue ADD COLUMN template jsonb;

ALTER TABLE accounts
  ADD COLUMN queued_fires integer NOT NULL DEFAULT 0,
  ADD COLUMN stored_request_bytes bigint NOT NULL DEFAULT 0,
  ADD CONSTRAINT accounts_queued_fires_not_negative CHECK (queued_fires >= 0);
UPDATE accounts SET queued_fires = (SELECT count(*) FROM fire_queue WHERE account_id = accounts.id);
