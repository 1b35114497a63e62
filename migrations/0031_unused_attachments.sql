-- A person attaches a file before they send the message. A file whose message never comes would take room of the
-- conversation until the session is deleted. So a file has an end, which the message that names it removes.
ALTER TABLE conversation_attachments
  -- When it is removed. Null: a message has it, and it is kept with the conversation.
  ADD COLUMN expires_at timestamptz;

CREATE INDEX conversation_attachments_expiring_idx ON conversation_attachments (expires_at)
  WHERE expires_at IS NOT NULL;
