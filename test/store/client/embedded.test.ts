import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, readFileSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { databaseUid } from "../../../src/domain/sandbox/host-uids.ts";
import { claimDataDirectory } from "../../../src/store/data-directory.ts";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { startEmbedded } from "../../../src/store/postgres/embedded/embedded.ts";
import { processStartedAt } from "../../../src/store/process.ts";

const SERVICE = fileURLToPath(new URL("../../support/programs/embedded-service.ts", import.meta.url));
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** A directory below one that only its owner can pass, as a clone in a 0700 home lies. */
const home = (owner?: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const path = await mkdtemp(join(tmpdir(), "platform-home-"));
      await chmod(path, 0o700);
      if (owner !== undefined) await chown(path, owner, owner);
      return path;
    }),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true })),
  );

const query = (url: string, statement: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Record<string, unknown>>(statement)).pipe(
    Effect.provide(Client.layer({ url, maxConnections: 1 }), { local: true }),
  );

/** 0 without a postmaster. */
const postmasterOf = (dataDirectory: string): Effect.Effect<number> =>
  Effect.promise(async () => {
    const text = await readFile(join(dataDirectory, "postgres/postmaster.pid"), "utf8").catch(() => "");
    return Number(text.split("\n")[0]);
  });

const isRunning = (pid: number) => Effect.promise(async () => (await processStartedAt(pid)) !== null);

const end = (child: ChildProcess, signal: NodeJS.Signals) =>
  Effect.promise(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, "exit");
  });

interface Said {
  readonly url?: string;
  readonly refused?: { readonly tag: string; readonly pid: number };
}

/** Starts a service of its own process on a data directory and waits for its first line. */
const startService = Effect.fnUntraced(function* (dataDirectory: string, uid?: number) {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [SERVICE, dataDirectory], {
        ...(uid !== undefined && { uid, gid: uid }),
        cwd: "/",
        env: { PATH: "/usr/bin:/bin", HOME: dataDirectory },
        stdio: ["ignore", "pipe", "inherit"],
      }),
    ),
    (started) => end(started, "SIGTERM"),
  );
  const said = yield* Effect.promise(async (): Promise<Said> => {
    // Its log goes to the same stream.
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.startsWith("{")) return JSON.parse(line);
    }
    return {};
  });
  return { child, said };
});

const urlOf = ({ said }: { readonly said: Said }) =>
  said.url === undefined
    ? Effect.die(new Error(`it did not start: ${JSON.stringify(said)}`))
    : Effect.succeed(said.url);

describe("the embedded Postgres", () => {
  it.live("starts below a 0700 directory, keeps its data, and is gone when its scope closes", () =>
    Effect.gen(function* () {
      const directory = join(yield* home(), "data");
      const life = <A, E>(use: (url: string) => Effect.Effect<A, E>) =>
        Effect.scoped(
          Effect.gen(function* () {
            const path = yield* claimDataDirectory(directory);
            const { url } = yield* startEmbedded(path);
            return { result: yield* use(url), pid: yield* postmasterOf(path) };
          }),
        );
      const first = yield* life((url) => query(url, "CREATE TABLE kept AS SELECT 1 AS one"));
      expect(yield* isRunning(first.pid)).toBe(false);
      const second = yield* life((url) =>
        query(url, "SELECT one, current_setting('fsync') AS fsync FROM kept"),
      );
      expect(second.result).toEqual([{ one: 1, fsync: "on" }]);
      const left = yield* Effect.promise(() => readdir(directory));
      expect(left.toSorted()).toEqual([".gitignore", "postgres", "postgres-password", "postgres.log"]);
    }).pipe(Effect.scoped),
  );

  it.live("listens on no port, and accepts no connection without its password", () =>
    Effect.gen(function* () {
      const path = yield* claimDataDirectory(join(yield* home(), "data"));
      const { url } = yield* startEmbedded(path);
      expect(yield* query(url, "SELECT current_setting('listen_addresses') AS addresses")).toEqual([
        { addresses: "" },
      ]);
      const error = yield* Effect.flip(query(url.replace(/:[^:@]+@/, ":wrong@"), "SELECT 1"));
      expect(error.reason._tag).toBe("AuthenticationError");
      const { mode } = yield* Effect.promise(() => stat(join(path, "postgres")));
      expect(mode & 0o777).toBe(0o700);
    }).pipe(Effect.scoped),
  );

  it.live("works if the path is too long for a socket's address, and leaves no link behind", () =>
    Effect.gen(function* () {
      const links = Effect.promise(async () =>
        (await readdir(tmpdir())).filter((name) => name.startsWith("platform-pg-")),
      );
      const before = yield* links;
      const path = join(yield* home(), "a".repeat(60), "b".repeat(60));
      yield* Effect.promise(() => mkdir(path, { recursive: true }));
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* startEmbedded(yield* claimDataDirectory(path));
          expect(yield* query(url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
        }),
      );
      expect(yield* links).toEqual(before);
    }).pipe(Effect.scoped),
  );

  it.live("stops the postmaster that a killed service left, and finds its committed rows [fact 1]", () =>
    Effect.gen(function* () {
      const directory = join(yield* home(), "data");
      const killed = yield* startService(directory);
      yield* query(yield* urlOf(killed), "CREATE TABLE kept AS SELECT 1 AS one");
      const orphan = yield* postmasterOf(directory);
      yield* end(killed.child, "SIGKILL");
      expect(yield* isRunning(orphan)).toBe(true);
      const next = yield* startService(directory);
      expect(yield* isRunning(orphan)).toBe(false);
      expect(yield* query(yield* urlOf(next), "SELECT one FROM kept")).toEqual([{ one: 1 }]);
    }).pipe(Effect.scoped),
  );

  it.live("starts on a copy of a directory whose server runs, and leaves that server alone", () =>
    Effect.gen(function* () {
      const directory = join(yield* home(), "data");
      const running = yield* startService(directory);
      const url = yield* urlOf(running);
      for (const text of ["CREATE TABLE kept AS SELECT 1 AS one", "CHECKPOINT"]) yield* query(url, text);
      const copied = join(yield* home(), "data");
      execFileSync("cp", ["-a", directory, copied]);
      const copy = yield* startService(copied);
      expect(yield* query(yield* urlOf(copy), "SELECT one FROM kept")).toEqual([{ one: 1 }]);
      expect(yield* query(url, "SELECT one FROM kept")).toEqual([{ one: 1 }]);
    }).pipe(Effect.scoped),
  );

  it.live("comes back on the same address when its postmaster is killed, for existing clients", () =>
    Effect.gen(function* () {
      const path = yield* claimDataDirectory(join(yield* home(), "data"));
      const { url } = yield* startEmbedded(path);
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient;
        yield* sql`CREATE TABLE kept AS SELECT 1 AS one`;
        const killed = yield* postmasterOf(path);
        process.kill(killed, "SIGKILL");
        // The killed one's sessions may answer until they notice; its successor counts.
        yield* Effect.repeat(postmasterOf(path), {
          until: (pid) => pid !== 0 && pid !== killed,
          schedule: Schedule.spaced("20 millis"),
        });
        const rows = yield* Effect.retry(sql`SELECT one FROM kept`, Schedule.spaced("20 millis"));
        expect(rows).toEqual([{ one: 1 }]);
        expect(yield* sql`INSERT INTO kept VALUES (2) RETURNING one`).toEqual([{ one: 2 }]);
      }).pipe(Effect.provide(Client.layer({ url })));
    }).pipe(Effect.scoped),
  );

  it.live("creates its database again if a first start was cut off", () =>
    Effect.gen(function* () {
      const path = yield* claimDataDirectory(join(yield* home(), "data"));
      yield* Effect.promise(async () => {
        await mkdir(join(path, "postgres.new"));
        await writeFile(join(path, "postgres.new/PG_VERSION"), "18\n");
      });
      const { url } = yield* startEmbedded(path);
      expect(yield* query(url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    }).pipe(Effect.scoped),
  );

  it.live("explains the error for a database of another version", () =>
    Effect.gen(function* () {
      const path = yield* claimDataDirectory(join(yield* home(), "data"));
      yield* Effect.promise(async () => {
        await mkdir(join(path, "postgres"));
        await writeFile(join(path, "postgres/PG_VERSION"), "15\n");
      });
      const error = yield* Effect.flip(startEmbedded(path));
      expect(error.message).toMatch(/Postgres 15 created the database, but this is 18/);
    }).pipe(Effect.scoped),
  );

  it.live.skipIf(!isRoot)("runs as a user of its own, and goes on with the database of another one", () =>
    Effect.gen(function* () {
      const path = yield* claimDataDirectory(join(yield* home(), "data"));
      const life = (statement: string) =>
        Effect.scoped(
          Effect.gen(function* () {
            const { url } = yield* startEmbedded(path);
            const server = yield* postmasterOf(path);
            const { uid } = yield* Effect.promise(() => stat(`/proc/${server}`));
            return { uid, rows: yield* query(url, statement) };
          }),
        );
      const first = yield* life("CREATE TABLE kept AS SELECT 1 AS one");
      expect(first.uid).toBe(databaseUid(path, readFileSync("/proc/self/uid_map", "utf8")));
      // As a version left it whose server ran as `nobody`.
      execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, join(path, "postgres")]);
      expect(yield* life("SELECT one FROM kept")).toEqual({ uid: first.uid, rows: [{ one: 1 }] });
      const { uid } = yield* Effect.promise(() => stat(join(path, "postgres/base")));
      expect(uid).toBe(first.uid);
    }).pipe(Effect.scoped),
  );

  const isReadableByAll = (() => {
    try {
      accessSync(SERVICE, constants.R_OK);
      return !SERVICE.startsWith("/root/");
    } catch {
      return false;
    }
  })();
  it.live.skipIf(!isRoot || !isReadableByAll)("runs for an ordinary user in a 0700 home, as that user", () =>
    Effect.gen(function* () {
      const directory = join(yield* home(NOBODY), "data");
      const service = yield* startService(directory, NOBODY);
      expect(yield* query(yield* urlOf(service), "SELECT 1 AS one")).toEqual([{ one: 1 }]);
      const { uid } = yield* Effect.promise(() => stat(`/proc/${service.child.pid}`));
      expect(uid).toBe(NOBODY);
    }).pipe(Effect.scoped),
  );
});

describe("a data directory", () => {
  it.live("is refused to a second service, with the first one's process id [fact 1]", () =>
    Effect.gen(function* () {
      const directory = join(yield* home(), "data");
      yield* claimDataDirectory(directory);
      const second = yield* startService(directory);
      expect(second.said).toEqual({ refused: { tag: "DataDirectoryOwned", pid: process.pid } });
      const error = yield* Effect.flip(claimDataDirectory(directory));
      expect(error.message).toContain(`process id ${process.pid}`);
    }).pipe(Effect.scoped),
  );

  it.live("is taken over from a process that is gone, even if its id was reused", () =>
    Effect.gen(function* () {
      const directory = yield* home();
      const owners = [
        JSON.stringify({ pid: 2 ** 22 + 1, startedAt: "x" }),
        JSON.stringify({ pid: process.pid, startedAt: "another boot:1" }),
        "half a lo",
        "",
      ];
      for (const owner of owners) {
        yield* Effect.promise(() => writeFile(join(directory, "owner.0123456789abcdef.json"), owner));
        const path = yield* Effect.scoped(claimDataDirectory(directory));
        expect(path).toBe(directory);
      }
      expect(yield* Effect.promise(() => readdir(directory))).toEqual([".gitignore"]);
    }).pipe(Effect.scoped),
  );

  it.live("never has two owners, even if many services claim a dead one's at once", () =>
    Effect.gen(function* () {
      const directory = yield* home();
      const dead = JSON.stringify({ pid: 2 ** 22 + 1, startedAt: "x" });
      yield* Effect.promise(() => writeFile(join(directory, "owner.0123456789abcdef.json"), dead));
      const claims = yield* Effect.all(
        Array.from({ length: 10 }, () => Effect.option(claimDataDirectory(directory))),
        { concurrency: "unbounded" },
      );
      expect(claims.filter(({ _tag }) => _tag === "Some").length).toBeLessThanOrEqual(1);
    }).pipe(Effect.scoped),
  );

  it.live("is closed to others and ignored by git", () =>
    Effect.gen(function* () {
      const path = yield* claimDataDirectory(join(yield* home(), "deep/er/data"));
      const { mode } = yield* Effect.promise(() => stat(path));
      expect(mode & 0o777).toBe(0o700);
      expect(yield* Effect.promise(() => readFile(join(path, ".gitignore"), "utf8"))).toBe("*\n");
    }).pipe(Effect.scoped),
  );
});
