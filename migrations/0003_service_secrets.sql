-- A secret can be the service's own: it verifies webhooks, and sandboxes never get it. Secrets from before this change are delivered as
-- before. The page and `platform triggers list` name the triggers whose secret agents have.

ALTER TABLE project_secrets ADD COLUMN service boolean NOT NULL DEFAULT false;
