-- The items of a sandbox stand in the order in which its agent made them, also if they are reported late. The number of an item in that
-- order, and the highest one of the sandbox whose report was written last. Null: the sandbox's daemon is from before this change, and
-- its items stay in the order of their reports.

ALTER TABLE conversation_items ADD COLUMN native_order bigint;
ALTER TABLE conversations ADD COLUMN sandbox_order bigint;
