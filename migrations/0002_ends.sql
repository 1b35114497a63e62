-- What a browser or a token opened ends with it: a program's login that it approved, and the sign-in to a connector that it opened. Both
-- live for ten minutes. Rows without a value are from before this change, and go on.
--
-- Not references: a browser's session is deleted when it ends, and its id then names nothing.

ALTER TABLE device_logins ADD COLUMN decided_with uuid;
ALTER TABLE connector_flows ADD COLUMN opened_in uuid;
