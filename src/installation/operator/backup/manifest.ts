/** The first entry of a backup: its origin, and the requirements of a restore. */
import * as Schema from "effect/Schema";

/** The version of the archive's layout. A program reads the formats that it knows. */
export const FORMAT = 1;
export const MANIFEST = "backup.json";

export const BackupManifest = Schema.Struct({
  format: Schema.Literal(FORMAT),
  created_at: Schema.String,
  installation_id: Schema.String,
  node_id: Schema.String,
  /** `given`: the installation gets it from PLATFORM_MASTER_KEY, and the backup does not contain it. */
  master_key: Schema.Literals(["included", "given"]),
  migrations: Schema.Array(Schema.Struct({ name: Schema.String, checksum: Schema.String })),
});
export type BackupManifest = typeof BackupManifest.Type;

/** The paths of an installation's parts in the archive. */
export const ENTRY = {
  masterKey: "installation/master-key",
  installationId: "installation/installation-id",
  nodeId: "installation/node-id",
  /** Portions of a table. Each is a JSON list of its rows' texts. */
  rows: (table: string, portion: number) => `database/${table}/${portion}`,
  head: (projectId: string) => `repositories/${projectId}/head`,
  bundle: (projectId: string) => `repositories/${projectId}/bundle`,
  /** The saved work of a project's sessions. Backups of earlier versions have none. */
  saves: (projectId: string) => `saves/${projectId}/bundle`,
} as const;

export type Part =
  | { readonly kind: "installation"; readonly file: "master-key" | "installation-id" | "node-id" }
  | { readonly kind: "rows"; readonly table: string }
  | { readonly kind: "head" | "bundle" | "saves"; readonly projectId: string };

/** The part that an entry's name refers to. Null for an unknown name. */
export const partNamed = (name: string): Part | null => {
  const [, file] = /^installation\/(master-key|installation-id|node-id)$/.exec(name) ?? [];
  if (file === "master-key" || file === "installation-id" || file === "node-id")
    return { kind: "installation", file };
  const [, table] = /^database\/([a-z_]{1,63})\/\d+$/.exec(name) ?? [];
  if (table !== undefined) return { kind: "rows", table };
  const [, saved] = /^saves\/([0-9a-f-]{36})\/bundle$/.exec(name) ?? [];
  if (saved !== undefined) return { kind: "saves", projectId: saved };
  const [, projectId, kind] = /^repositories\/([0-9a-f-]{36})\/(head|bundle)$/.exec(name) ?? [];
  return projectId !== undefined && (kind === "head" || kind === "bundle") ? { kind, projectId } : null;
};
