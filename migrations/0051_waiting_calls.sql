-- A session's record has the number of its calls that wait for a person, and lists find the sessions that have some. Both read
-- these rows: there are few, since each leaves the index when a person has decided and the call begins.
-- For an operator: the index is built at the start, in moments, since few rows are in it.

CREATE INDEX executor_calls_waiting_idx ON executor_calls (session_id) WHERE outcome = 'pending';
