/** Backups of earlier states of the schema (README.md) are restored, migrated and read by this version. */
import { readdirSync, statSync } from "node:fs";
import path from "node:path";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect, test } from "vitest";
import { readEntries, entryText } from "../../src/installation/operator/backup/archive.ts";
import { BackupManifest, MANIFEST, partNamed } from "../../src/installation/operator/backup/manifest.ts";
import { contentText } from "../../src/domain/conversation/conversation.ts";
import * as Client from "../../src/store/postgres/connection/client.ts";
import { postgresStore } from "../../src/assembly/database.ts";
import { loadMigrations, migrate, runMigrations, sinceBaseline } from "../../src/store/postgres/migrate.ts";
import { fillTables, type Filling } from "../../src/store/postgres/rows.ts";
import { ChangeRequests } from "../../src/features/change-requests/ports/change-requests.ts";
import { Conversations } from "../../src/store/ports/sessions/conversations.ts";
import { Fires } from "../../src/store/ports/triggers/fires.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import { Sandboxes } from "../../src/store/ports/sessions/sandboxes.ts";
import { Secrets } from "../../src/store/ports/projects/secrets.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { freshDatabase } from "../support/postgres/postgres.ts";

const STATES = path.join(import.meta.dirname, "states");
const BACKUP = ".backup";
const MAX_BYTES = 200_000;
const states = readdirSync(STATES)
  .filter((name) => name.endsWith(BACKUP))
  .map((name) => name.slice(0, -BACKUP.length));

const decodeManifest = Schema.decodeUnknownSync(Schema.fromJsonString(BackupManifest));
const decodeRows = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Schema.String)));

/** What the backup's database had been migrated to. */
const manifestOf = async (file: string): Promise<BackupManifest> => {
  for await (const entry of readEntries(file))
    if (entry.name === MANIFEST) return decodeManifest(await entryText(entry));
  throw new Error(`${file} has no manifest`);
};

const addRows = async (file: string, { add }: Filling): Promise<void> => {
  for await (const entry of readEntries(file)) {
    const part = partNamed(entry.name);
    if (part?.kind === "rows") await add(part.table, decodeRows(await entryText(entry)));
    else await entryText(entry);
  }
};

/** A database as the backup's service left it, before this version starts on it. @returns its address, and the migrations that it lacks */
const restored = Effect.fnUntraced(function* (state: string) {
  const file = path.join(STATES, `${state}${BACKUP}`);
  const known = yield* loadMigrations;
  const { migrations } = yield* Effect.promise(() => manifestOf(file));
  const has = new Set(sinceBaseline(known, migrations)?.map(({ name }) => name));
  const url = yield* freshDatabase("empty");
  const client = Client.layer({ url, maxConnections: 1 });
  const then = known.filter(({ name }) => has.has(name));
  yield* Effect.provide(runMigrations(then), client, { local: true });
  yield* fillTables(url, (filling) => addRows(file, filling));
  return { url, lacks: known.flatMap(({ name }) => (has.has(name) ? [] : [name])) };
});

/** What this version's ports read of it. */
const read = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const [row] = yield* sql<{ readonly id: string }>`SELECT id FROM projects`;
  const projectId = row?.id ?? "";
  const rows = yield* sql<{ readonly id: string }>`SELECT id FROM project_sessions ORDER BY created_at`;
  const [conversations, sandboxes] = [yield* Conversations, yield* Sandboxes];
  const sessions = yield* Effect.forEach(rows, ({ id }) =>
    Effect.gen(function* () {
      const session = yield* (yield* Sessions).get(id);
      const page = yield* conversations.page(id, { before: null, limit: 100 });
      const snapshot = yield* (yield* Sessions).memory.load(id);
      return {
        status: session?.status,
        stopReason: session?.stopReason,
        turn: session?.lastTurn?.state,
        state: snapshot?.snapshot.state,
        sandbox: (yield* sandboxes.newest(id))?.status,
        messages: (page?.items ?? [])
          .filter(({ kind, role }) => kind === "message" && role === "user")
          .map(({ content }) => contentText(content)),
        tools: (page?.items ?? []).filter(({ kind }) => kind === "tool").length,
      };
    }),
  );
  const fires = yield* (yield* Fires).lastBySlug(projectId, ["hook"]);
  const request = yield* (yield* ChangeRequests).get(projectId, 1);
  return {
    project: (yield* (yield* Projects).get(projectId))?.name,
    secrets: (yield* (yield* Secrets).sealed(projectId)).map(({ name }) => name),
    fire: fires.get("hook")?.status,
    changeRequest: request?.status,
    tokens: (yield* sql`SELECT 1 FROM tokens WHERE name = 'kept'`).length,
    sessions,
  };
});

describe.each(states)("a backup of the state %s", (state) => {
  test("is small", () => {
    expect(statSync(path.join(STATES, `${state}${BACKUP}`)).size).toBeLessThanOrEqual(MAX_BYTES);
  });

  it.live("is migrated, and read as it was", () =>
    Effect.gen(function* () {
      const { url, lacks } = yield* restored(state);
      const client = Client.layer({ url, maxConnections: 2 });
      expect(yield* Effect.provide(migrate, client, { local: true })).toEqual(lacks);
      expect(yield* Effect.provide(read, Layer.provideMerge(postgresStore, client), { local: true })).toEqual(
        {
          project: expect.stringMatching(/^sample( [-0-9a-f]{36})?$/),
          secrets: ["HOOK_SECRET"],
          fire: "fired",
          changeRequest: "open",
          tokens: 1,
          sessions: [
            {
              status: "stopped",
              stopReason: "requested",
              turn: "completed",
              state: "stopped",
              sandbox: "stopped",
              messages: ["write hooked.txt: from a webhook"],
              tools: 3,
            },
            {
              status: "running",
              stopReason: null,
              turn: "completed",
              state: "running",
              sandbox: "active",
              messages: ["run: echo unpushed > left.txt", "write kept.txt: pushed"],
              tools: 4,
            },
          ],
        },
      );
    }).pipe(Effect.scoped),
  );
});

test("each migration but the newest is in a backup (README.md, Add a state)", async () => {
  const known = await Effect.runPromise(loadMigrations);
  const files = states.map((state) => path.join(STATES, `${state}${BACKUP}`));
  const manifests = await Promise.all(files.map(manifestOf));
  const inBackups = new Set(manifests.flatMap(({ migrations }) => migrations.map(({ name }) => name)));
  expect(known.slice(0, -1).flatMap(({ name }) => (inBackups.has(name) ? [] : [name]))).toEqual([]);
});
