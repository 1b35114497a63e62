-- People hear when the agent has finished: the event session.turn_ended, once for each turn after which the agent rests. A turn whose
-- end is noted while the conversation still goes on waits here until it rests. Null: no turn waits.
-- For an operator: nothing to do. A turn that is under way during the upgrade is told as any other one.

ALTER TABLE conversations ADD COLUMN turn_to_tell jsonb;
