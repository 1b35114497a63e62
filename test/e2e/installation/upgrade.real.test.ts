/** Schema changes at start: several processes of the real program on one database. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import path from "node:path";
import { text } from "node:stream/consumers";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { loadMigrations } from "../../../src/store/postgres/migrate.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { Installation, type Life, TOKEN } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";

const MAIN = path.join(import.meta.dirname, "../../../src/main.ts");

const scope = Effect.runSync(Scope.make());
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));
const installations: Installation[] = [];
afterEach(async () => {
  for (const installation of installations.splice(0)) await installation.close();
}, TEST_MS);

const open = async (): Promise<Installation> => {
  const installation = await Installation.open();
  installations.push(installation);
  return installation;
};

const database = (kind: "migrated" | "empty") => Effect.runPromise(Scope.provide(freshDatabase(kind), scope));

const query = (url: string, statement: string): Promise<readonly Record<string, unknown>[]> =>
  Effect.runPromise(
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Record<string, unknown>>(statement)).pipe(
      Effect.provide(Client.layer({ url, maxConnections: 1 }), { local: true }),
    ),
  );

const settings = (url: string) => ({
  DATABASE_URL: url,
  PLATFORM_MASTER_KEY: MASTER_KEY,
  PLATFORM_SANDBOX_PROVIDER: "simulated",
});
const MASTER_KEY = randomBytes(32).toString("hex");

/** A start that must be refused: its exit code and its message. */
const refusal = async ({ directory, dataDir }: Installation, url: string) => {
  const child = spawn(process.execPath, [MAIN], {
    cwd: directory,
    env: { ...process.env, ...settings(url), PLATFORM_PORT: "0", PLATFORM_DATA_DIR: dataDir },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [[code], stdout, stderr] = await Promise.all([
    once(child, "exit") as Promise<[number | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, stdout, stderr };
};

describe("an upgrade", () => {
  it(
    "runs once for two services that start at the same time, and both serve",
    async () => {
      const url = await database("empty");
      const lives: Life[] = await Promise.all(
        [await open(), await open()].map((installation) => installation.start(settings(url))),
      );
      const known = (await Effect.runPromise(loadMigrations)).map(({ name }) => name);
      const rows = await query(
        url,
        `SELECT name, applied_at::text AS at FROM schema_migrations ORDER BY name`,
      );
      expect(rows.map(({ name }) => name)).toEqual(known);
      // All of them by one transaction, whose instant stands in each.
      expect(new Set(rows.map(({ at }) => at)).size).toBe(1);
      expect(await query(url, "SELECT count(*)::integer AS accounts FROM accounts")).toEqual([
        { accounts: 1 },
      ]);
      for (const life of lives) {
        const { account } = (await life.call("GET", "/v1/me")) as { account: { active_sessions: number } };
        expect(account.active_sessions).toBe(0);
        expect(await life.end("SIGTERM")).toBe(0);
      }
    },
    TEST_MS,
  );

  it(
    "by a newer version is not undone: an older one refuses to start with a message, and changes nothing",
    async () => {
      const url = await database("migrated");
      await query(url, "INSERT INTO schema_migrations (name, checksum) VALUES ('9999_later.sql', 'later')");
      const { code, stdout, stderr } = await refusal(await open(), url);
      expect(code).toBe(1);
      expect(stdout).toBe("");
      expect(stderr).toContain(
        "The database has the migration 9999_later.sql, which this version of the service does not have: " +
          "a newer version has used the database. Start that version, or restore an older backup.",
      );
      // No stack, and no token.
      expect(stderr).not.toMatch(/^\s+at /m);
      expect(stderr).not.toContain(TOKEN);
      expect(await query(url, "SELECT count(*)::integer AS accounts FROM accounts")).toEqual([
        { accounts: 0 },
      ]);
    },
    TEST_MS,
  );
});
