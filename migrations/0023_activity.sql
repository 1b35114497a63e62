-- Activity lists what happened in all projects that a person sees. The events that people read are kept longer than the others, and have the kind
-- of their news in a column, by which an index finds them. `users.activity_seen_at` is until when a person has seen the list. Nothing changes for
-- existing rows: the list begins with the upgrade.

ALTER TABLE events ADD COLUMN news text;
CREATE INDEX events_news_idx ON events (project_id, id DESC) WHERE news IS NOT NULL;

ALTER TABLE users ADD COLUMN activity_seen_at timestamptz;
