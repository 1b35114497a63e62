-- People see what they are asked to review. What the row of a session shows of its change request is stored when people say it: how many
-- threads are open, and who asks for changes. This migration counts both for the requests that exist.

CREATE INDEX change_request_reviewers_user_idx ON change_request_reviewers (user_id);

ALTER TABLE change_requests
  ADD COLUMN open_threads integer NOT NULL DEFAULT 0,
  ADD COLUMN changes_asked_by uuid CONSTRAINT change_requests_changes_asked_by_fkey REFERENCES users (id);

UPDATE change_requests AS request SET
  open_threads = (SELECT count(*) FROM change_request_remarks AS remark
    WHERE remark.change_request_id = request.id AND remark.kind = 'comment' AND remark.reply_to IS NULL
      AND remark.resolved_at IS NULL AND remark.created_by IS DISTINCT FROM request.created_by),
  changes_asked_by = (SELECT newest.created_by FROM (
      SELECT DISTINCT ON (remark.created_by) remark.kind, remark.created_at, remark.id, remark.created_by
      FROM change_request_remarks AS remark
      WHERE remark.change_request_id = request.id AND remark.kind <> 'comment'
      ORDER BY remark.created_by, remark.created_at DESC, remark.id DESC
    ) AS newest WHERE newest.kind = 'changes_requested' ORDER BY newest.created_at DESC, newest.id DESC LIMIT 1)
WHERE EXISTS (SELECT FROM change_request_remarks WHERE change_request_id = request.id);

-- People find sessions by the words of messages, their own and the agent's. Signs within words, as in `src/main.ts`, divide them. A
-- message's first 20,000 characters are searched: a longer vector could be refused. The words of messages that exist are added by the
-- running service, some at a time, so that this migration does not take long.
CREATE FUNCTION message_words(record jsonb) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN record ->> 'parentId' IS NOT NULL THEN ''::tsvector ELSE to_tsvector('simple'::regconfig, translate(
    left((SELECT string_agg(part.value ->> 'text', '' ORDER BY part.ordinality)
      FROM jsonb_array_elements(record -> 'content') WITH ORDINALITY AS part), 20000),
    '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))) END
$$;
ALTER TABLE conversation_items ADD COLUMN words tsvector;
CREATE INDEX conversation_items_words_idx ON conversation_items USING gin (words) WHERE words IS NOT NULL;
CREATE INDEX conversation_items_wordless_idx ON conversation_items (session_id)
  WHERE words IS NULL AND kind = 'message' AND status IN ('accepted', 'completed', 'failed', 'interrupted', 'lost');
