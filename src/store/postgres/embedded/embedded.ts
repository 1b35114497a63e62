/**
 * The service's own Postgres, for an installation without DATABASE_URL (api.md 9). The data directory contains all of
 * it: `postgres/` the database and its socket, `postgres-password`, `postgres.log`.
 *
 *  P1 It listens only on a unix socket inside its 0700 directory, and requires a password. It opens no port.
 *  P2 If the service runs as root, the server runs as a user of its own (domain/sandbox/host-uids.ts), since Postgres refuses root. No
 *     other program runs as this user, so none reads the server's memory or directory. The directory is passed as an open
 *     descriptor (`/proc/self/fd/3`), so it works below a 0700 home, which this user cannot enter.
 *  P3 A postmaster that a killed service left running is stopped before the directory is reused (threats.md fact 1).
 *  P4 fsync stays on. A server that exits by itself is restarted on the same address.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import {
  access,
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import { processStartedAt } from "../../process.ts";
import { prepareBinaries, type Binaries } from "./binaries.ts";
import { ACCOUNT_LIBRARY, handOver, handOverDatabase, serverUser, type ServerUser } from "./user.ts";
import * as Client from "../connection/client.ts";

/** The embedded database cannot be created or started. `message` says why, with the server's last output. */
export class EmbeddedPostgresFailed extends Schema.TaggedError<EmbeddedPostgresFailed>()(
  "EmbeddedPostgresFailed",
  { message: Schema.String },
) {}

const USER = "platform";
/** A socket's path, including its name, has at most 107 bytes (unix(7)). */
const SOCKET = ".s.PGSQL.5432";
const MAX_SOCKET_DIRECTORY_BYTES = 107 - `/${SOCKET}`.length;
/** Crash recovery reads the log since the last checkpoint: seconds, rarely a minute. */
const START_TIMEOUT = "90 seconds";
/** A fast shutdown writes a checkpoint. After this time the server is killed, and recovers at the next start. */
const STOP_TIMEOUT = "6 seconds";
const QUIT_TIMEOUT = "2 seconds";
const POLL = "10 millis";
/** Orphaned backends of a killed postmaster hold its shared memory for a moment. */
export const START_TRIES = { again: 5, afterMs: 500 } as const;
const START_RETRIES = { times: START_TRIES.again, schedule: Schedule.spaced(START_TRIES.afterMs) } as const;
export const RESTART_AFTER_MS = 1_000;
const LOG_TAIL_BYTES = 2_000;

interface Place {
  readonly binaries: Binaries;
  /** The database itself. */
  readonly directory: string;
  readonly log: string;
  readonly user: ServerUser;
}

const toFailure = (what: string) => (cause: unknown) =>
  new EmbeddedPostgresFailed({ message: `The embedded Postgres ${what}: ${String(cause)}` });

const attempt = <A>(what: string, run: () => Promise<A>): Effect.Effect<A, EmbeddedPostgresFailed> =>
  Effect.tryPromise({ try: run, catch: toFailure(what) });

// The service's own environment is not passed on: it contains keys.
const environment = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

const awaitExit = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      resolve(code);
    });
  });

/** Creates the database in a draft directory and moves it into place when it is complete. */
const initialise = async (place: Place, password: string): Promise<void> => {
  const draft = `${place.directory}.new`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o700 });
  await handOver(draft, place.user);
  const passwordPath = `${place.directory}.pw`;
  await writeFile(passwordPath, password, { mode: 0o600 });
  await handOver(passwordPath, place.user);
  await using directory = await open(draft, "r");
  await using passwordFile = await open(passwordPath, "r");
  await using account = await open(ACCOUNT_LIBRARY, "r");
  await rm(passwordPath);
  const child = spawn(
    place.binaries.initdb,
    [
      "--pgdata=/proc/self/fd/3",
      `--username=${USER}`,
      "--pwfile=/proc/self/fd/4",
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale=C",
      "--no-instructions",
    ],
    {
      ...place.user,
      cwd: "/",
      env: { ...environment, ...(place.user.uid !== undefined && { LD_PRELOAD: "/proc/self/fd/5" }) },
      stdio: ["ignore", "ignore", "pipe", directory.fd, passwordFile.fd, account.fd],
    },
  );
  let complaint = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-LOG_TAIL_BYTES);
  });
  const code = await awaitExit(child);
  if (code !== 0) throw new Error(`initdb ended with ${code}: ${complaint.trim()}`);
  await rename(draft, place.directory);
};

const passwordPathIn = (dataDirectory: string): string => join(dataDirectory, "postgres-password");

const readPassword = (path: string): Promise<string | null> =>
  readFile(path, "utf8").then(
    (text) => text.trim(),
    () => null,
  );

/** Without one of these directories the server would either not start, or start without its databases. */
const expectWhole = (directory: string): void => {
  const paths = ["base", "global", "pg_wal"].map((name) => join(directory, name));
  const missing = paths.find((path) => !existsSync(path));
  if (missing !== undefined) throw new Error(`${missing} is missing; restore the installation from a backup`);
};

const prepare = async (dataDirectory: string) => {
  const binaries = await prepareBinaries(dataDirectory);
  const place: Place = {
    binaries,
    directory: join(dataDirectory, "postgres"),
    log: join(dataDirectory, "postgres.log"),
    user: await serverUser(dataDirectory),
  };
  const passwordPath = passwordPathIn(dataDirectory);
  const version = await readFile(join(place.directory, "PG_VERSION"), "utf8").catch(() => null);
  if (version !== null && version.trim() !== binaries.major) {
    throw new Error(`Postgres ${version.trim()} created the database, but this is ${binaries.major}`);
  }
  if (version !== null) expectWhole(place.directory);
  const recordedPassword = await readPassword(passwordPath);
  if (version !== null && recordedPassword === null) throw new Error(`${passwordPath} is missing`);
  const password = recordedPassword ?? randomBytes(24).toString("base64url");
  if (recordedPassword === null) await writeFile(passwordPath, `${password}\n`, { mode: 0o600 });
  if (version === null) await initialise(place, password);
  return { place, password };
};

/** The process in postmaster.pid, with its working directory. Null if the process cannot be inspected. */
const lockHolder = async ({ directory }: Pick<Place, "directory">) => {
  const lines = (await readFile(join(directory, "postmaster.pid"), "utf8").catch(() => "")).split("\n");
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 1) return null;
  const workingDirectory = await readlink(`/proc/${pid}/cwd`).catch(() => null);
  return workingDirectory === null ? null : { pid, workingDirectory, ready: lines[7]?.trim() === "ready" };
};

/** The postmaster in postmaster.pid, if it works on this directory. */
const postmaster = async (place: Pick<Place, "directory">) => {
  const holder = await lockHolder(place);
  return holder?.workingDirectory === place.directory ? { pid: holder.pid, ready: holder.ready } : null;
};

/** Postgres locks its directory and, once more, its socket. */
const LOCK_FILES = ["postmaster.pid", `${SOCKET}.lock`, SOCKET];

/**
 * Removes lock files that name a foreign process: they came with a copy of another directory, or the pid was reused
 * after a reboot. Postgres only checks whether the pid is in use, and would refuse to start.
 */
const dropForeignLock = (place: Place): Effect.Effect<void> =>
  Effect.promise(async () => {
    const holder = await lockHolder(place);
    if (holder === null || holder.workingDirectory === place.directory) return;
    await Promise.all(LOCK_FILES.map((name) => rm(join(place.directory, name), { force: true })));
  });

const signal = (pid: number, name: NodeJS.Signals): Effect.Effect<void> =>
  Effect.sync(() => {
    try {
      process.kill(pid, name);
    } catch {
      // It has already exited.
    }
  });

const awaitGone = (pid: number): Effect.Effect<void> =>
  Effect.promise(() => processStartedAt(pid)).pipe(
    Effect.delay(POLL),
    Effect.repeat({ until: (startedAt) => startedAt === null }),
    Effect.asVoid,
  );

/** Ends a server: a fast shutdown, then an immediate one, then a kill. */
export const stopServer = (pid: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (const [name, patience] of [
      ["SIGINT", STOP_TIMEOUT],
      ["SIGQUIT", QUIT_TIMEOUT],
      ["SIGKILL", QUIT_TIMEOUT],
    ] as const) {
      yield* signal(pid, name);
      const exit = yield* Effect.timeoutOption(awaitGone(pid), patience);
      if (exit._tag === "Some") return;
    }
  });

const stopOrphan = (place: Place): Effect.Effect<void> =>
  Effect.flatMap(
    Effect.promise(() => postmaster(place)),
    (orphan) =>
      orphan === null
        ? Effect.void
        : Effect.andThen(
            Effect.logWarning("stopping the embedded Postgres that an earlier service left running", {
              pid: orphan.pid,
            }),
            stopServer(orphan.pid),
          ),
  );

interface Server {
  readonly pid: number;
  readonly exited: Promise<number | null>;
  readonly isRunning: () => boolean;
}

const SETTINGS = {
  listen_addresses: "",
  // Relative to the database's directory, which is the server's working directory.
  unix_socket_directories: ".",
  timezone: "UTC",
  log_timezone: "UTC",
  log_min_messages: "warning",
  // Enough for the pools of several processes, tests and psql beside the service.
  max_connections: "200",
} as const;

const launch = async (place: Place): Promise<Server> => {
  await using log = await open(place.log, "w", 0o600);
  await using directory = await open(place.directory, "r");
  const child = spawn(
    place.binaries.postgres,
    [
      "-D",
      "/proc/self/fd/3",
      ...Object.entries(SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
    {
      ...place.user,
      cwd: "/",
      env: environment,
      // Its own process group: Ctrl-C reaches only the service, which stops the server when it no longer needs it.
      detached: true,
      stdio: ["ignore", "ignore", log.fd, directory.fd],
    },
  );
  const exit = awaitExit(child);
  if (child.pid === undefined) {
    await exit;
    throw new Error("it was not started");
  }
  return {
    pid: child.pid,
    exited: exit,
    isRunning: () => child.exitCode === null && child.signalCode === null,
  };
};

const lastWords = (place: Place): Effect.Effect<string> =>
  Effect.promise(() => readFile(place.log, "utf8").catch(() => "")).pipe(
    Effect.map((text) => text.slice(-LOG_TAIL_BYTES).trim()),
  );

const endedByItself = (place: Place, server: Server): Effect.Effect<never, EmbeddedPostgresFailed> =>
  Effect.gen(function* () {
    const code = yield* attempt("cannot be watched", () => server.exited);
    return yield* toFailure(`ended with ${code}`)(yield* lastWords(place));
  });

/** Starts the server. Completes when it accepts connections. Closing the scope stops it. */
const start = (place: Place): Effect.Effect<Server, EmbeddedPostgresFailed, Scope.Scope> =>
  Effect.gen(function* () {
    yield* stopOrphan(place);
    yield* dropForeignLock(place);
    yield* attempt("cannot be handed over to its user", () => handOverDatabase(place.directory, place.user));
    const server = yield* Effect.acquireRelease(
      attempt("cannot be started", () => launch(place)),
      // A server that exited by itself gets no signal: its pid may belong to another process by now.
      ({ pid, isRunning }) => Effect.suspend(() => (isRunning() ? stopServer(pid) : Effect.void)),
    );
    const ready = Effect.promise(() => postmaster(place)).pipe(
      Effect.delay(POLL),
      Effect.repeat({
        until: (postmasterState) => postmasterState?.pid === server.pid && postmasterState.ready,
      }),
      Effect.timeoutOrElse({
        duration: START_TIMEOUT,
        orElse: () => Effect.fail(toFailure("did not become ready")(START_TIMEOUT)),
      }),
    );
    yield* Effect.raceFirst(ready, endedByItself(place, server));
    return server;
  });

/** Runs the server until the scope closes. Completes when it accepts connections for the first time. */
const keepRunning = Effect.fnUntraced(function* (place: Place) {
  const ready = yield* Deferred.make<void, EmbeddedPostgresFailed>();
  const life = Effect.scoped(
    Effect.gen(function* () {
      const server = yield* Effect.retry(start(place), START_RETRIES);
      yield* Deferred.succeed(ready, undefined);
      return yield* endedByItself(place, server);
    }),
  );
  yield* life.pipe(
    Effect.tapError((error) => Deferred.fail(ready, error)),
    Effect.tapError((error) => Effect.logError(error.message)),
    Effect.retry(Schedule.spaced(RESTART_AFTER_MS)),
    Effect.forkScoped,
  );
  yield* Deferred.await(ready);
});

/** The socket's directory as clients name it: a short link if the real path is too long for an address. */
const socketDirectory = (directory: string): Effect.Effect<string, EmbeddedPostgresFailed, Scope.Scope> =>
  Buffer.byteLength(directory) <= MAX_SOCKET_DIRECTORY_BYTES
    ? Effect.succeed(directory)
    : Effect.acquireRelease(
        attempt("has no short path to its socket", async () => {
          const short = await mkdtemp(join(tmpdir(), "platform-pg-"));
          await chmod(short, 0o700);
          await symlink(directory, join(short, "d"));
          return short;
        }),
        (short) => Effect.promise(() => rm(short, { recursive: true, force: true })),
      ).pipe(Effect.map((short) => join(short, "d")));

/**
 * Runs the embedded Postgres until the scope closes. Creates the database on first use.
 *
 * @param dataDirectory the real path of a data directory that this process owns (`claimDataDirectory`).
 * @returns its address, for `pg` and for psql alike.
 */
export const startEmbedded = Effect.fn("store.startEmbedded")(function* (dataDirectory: string) {
  const { place, password } = yield* attempt("cannot be created", () => prepare(dataDirectory));
  yield* keepRunning(place);
  return { url: yield* databaseAddress(place.directory, password) };
});

const databaseAddress = Effect.fnUntraced(function* (directory: string, password: string) {
  const host = encodeURIComponent(yield* socketDirectory(directory));
  return `postgres://${USER}:${password}@localhost/postgres?host=${host}`;
});

/**
 * The running embedded Postgres of a service's data directory, for other programs of the same user.
 *
 * @param dataDirectory its real path.
 * @returns its address, valid until the scope closes. Null if no server accepts connections there.
 */
export const runningEmbedded = Effect.fn("store.runningEmbedded")(function* (dataDirectory: string) {
  const directory = join(dataDirectory, "postgres");
  const server = yield* attempt("cannot be found", () => postmaster({ directory }));
  const password = yield* attempt("cannot be opened", () => readPassword(passwordPathIn(dataDirectory)));
  return server?.ready === true && password !== null ? yield* databaseAddress(directory, password) : null;
});

/** Whether a data directory contains an embedded database. One that this user may not look into counts: what comes next says why. */
export const hasEmbedded = (dataDirectory: string): Promise<boolean> =>
  access(join(dataDirectory, "postgres", "PG_VERSION")).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === "EACCES",
  );

/** The embedded Postgres and a client of it. */
export const layer = (dataDirectory: string) =>
  Layer.unwrap(Effect.map(startEmbedded(dataDirectory), ({ url }) => Client.layer({ url })));
