-- Where the two branches of a change request stood when its readers were last told of them (api.md 6).
--
-- Branches move outside the database, by pushes and merges. A look compares them with these columns and writes both and
-- the event in one transaction: a move that nobody told of, because its service died, is told by the next look.
-- Null: the branch was gone, or was not looked at yet. Operators: each request that is open now is told of once.

ALTER TABLE change_requests
  ADD COLUMN base_tip text,
  ADD COLUMN head_tip text;
