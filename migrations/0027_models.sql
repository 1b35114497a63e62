-- Whether the repository configures a model provider of its own in the commit of the last good reading of the manifest: a
-- fire of a project that has neither that nor a key nor the managed gateway fails with `no_model`. Null: not looked up yet,
-- as for every reading from before; such a project's fires start sessions.
-- Nothing for an operator to do.

ALTER TABLE project_manifests ADD COLUMN brings_model boolean;
