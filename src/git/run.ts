/**
 * The only place that starts git, through the starter (src/starter). Every process gets the same closed environment:
 * no configuration of the machine, no prompt, no hook, and no transport except the requested one. Each has a process group
 * of its own and a deadline. When its caller is interrupted or done, it is asked to stop, and killed if it does not.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { readFile } from "node:fs/promises";
import { type Duplex, PassThrough, type Readable, type Writable } from "node:stream";
import { gitFailure } from "./failure.ts";
import { listen } from "./server/channel.ts";
import { GitError } from "./port.ts";
import { toleratedFaults } from "./tolerated-faults.ts";
import { StartError, type Program, startProgram } from "../starter/starter.ts";

/** The description of one git process. */
interface GitCommand {
  readonly args: readonly string[];
  /** The bare repository, as GIT_DIR. Null for commands that need none. */
  readonly repository: string | null;
  /** Settings of this process and its children, in addition to the fixed ones. */
  readonly config?: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * How it is asked to stop early. `signal` (the default) ends it at once. `hang-up` first ends its input and lets it
   * finish: `receive-pack` removes its quarantine when a push breaks off, but leaves it behind after a signal. If it is
   * working on received data, its own children are ended first.
   */
  readonly stopBy?: "signal" | "hang-up";
  /**
   * `own` (the default): all its children end with it. `shared`: it stays in the service's session. In a session of its
   * own, the kernel would schedule it separately from its reader. Use it for a git that ends its children itself when
   * asked to stop.
   */
  readonly group?: "own" | "shared";
  /** How long it may take to finish after its input ends, in milliseconds (10 s). */
  readonly hangUpMs?: number;
  /** Limits on the machine's resources for git and its children, for input from untrusted users. */
  readonly bounds?: GitBounds;
}

export interface GitBounds {
  /** Memory of each process. */
  readonly memoryBytes: number;
  /** The longest file that it may write. */
  readonly fileBytes: number;
}

export interface GitProcess {
  readonly stdin: Writable;
  /** Of a git that prints nothing, it may have ended already. */
  readonly stdout: Readable;
  /** Descriptor 3 of git and its hooks. */
  readonly channel: Duplex;
  /** The last 8 KiB of git's standard error. */
  readonly stderr: () => string;
  /** How many bytes it has written to standard error so far. */
  readonly said: () => number;
  /** Waits until standard error is closed. */
  readonly silent: Effect.Effect<void>;
  /** Waits for the process's end. Its exit code, or null if a signal ended it or it was lost. */
  readonly exit: Effect.Effect<number | null>;
  /** Waits for the process's end. True if the process that had started it died before it. */
  readonly isLost: Effect.Effect<boolean>;
  /** Asks git and its children to stop, without waiting. */
  readonly terminate: Effect.Effect<void>;
}

export interface GitRequest extends GitCommand {
  readonly stdin?: string | Uint8Array;
  /** Milliseconds until it is given up (30 s). */
  readonly deadlineMs?: number;
  /** Milliseconds without output after which it is also given up; up to twice as long. */
  readonly stallMs?: number;
  /** Answers a line that git's children write to descriptor 3. */
  readonly answer?: (line: string) => string;
  /** How many bytes of output are kept. Git is stopped at the first byte beyond (16 MiB). */
  readonly maxOutputBytes?: number;
  /** Exit codes that count as answers (0). Any other code is an error. */
  readonly expect?: readonly number[];
}

interface GitOutput {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly truncated: boolean;
  /** The last 8 KiB. */
  readonly stderr: string;
}

const deadlineMs = 30_000;
const maxOutputBytes = 16 * 1024 * 1024;
const stderrBytes = 8 * 1024;
/**
 * Time to finish after the input's end. Then SIGTERM, on which git removes its locks, and after the second time
 * SIGKILL.
 */
const hangUpMs = 10_000;
const killAfter = "2 seconds";
const lastWordsFor = "200 millis";
/** The first git with `merge-tree --write-tree` (threats.md G14). */
const oldestVersion: readonly [number, number] = [2, 38];

const fixedConfig: Readonly<Record<string, string>> = {
  "safe.directory": "*", // if the service runs as root, the data directory may belong to another user
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.fsync": "objects,derived-metadata,reference", // an acknowledged push survives a power failure
  "core.bigFileThreshold": "32m", // larger files are streamed instead of held in memory, and are not compared
  "pack.windowMemory": "128m", // for each thread that searches for deltas
  "core.quotePath": "false",
  "core.filesRefLockTimeout": "2000", // ms to wait for another writer of the same ref
  "core.packedRefsTimeout": "5000",
  "credential.helper": "",
  "transfer.fsckObjects": "true",
  ...toleratedFaults,
  "fetch.recurseSubmodules": "false",
  "submodule.recurse": "false",
  "http.followRedirects": "false", // only the first address was checked, not a redirect's
  "i18n.logOutputEncoding": "UTF-8",
};

const commandEnvironment = (command: GitCommand): Record<string, string> => {
  const config = Object.entries({ ...fixedConfig, ...command.config });
  const environment: Record<string, string> = {
    // The only inherited variable: the machine decides where git is installed.
    PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
    HOME: "/nonexistent",
    LC_ALL: "C",
    TZ: "UTC",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "",
    SSH_ASKPASS: "",
    GIT_ALLOW_PROTOCOL: "", // none; an import names the one it needs
    GIT_NO_LAZY_FETCH: "1",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_LITERAL_PATHSPECS: "1",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_LFS_SKIP_SMUDGE: "1",
    GIT_CONFIG_COUNT: String(config.length),
    ...command.environment,
  };
  for (const [index, [key, value]] of config.entries()) {
    environment[`GIT_CONFIG_KEY_${index}`] = key;
    environment[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  if (command.repository !== null) environment["GIT_DIR"] = command.repository;
  return environment;
};

/** A lower existing limit stays in force. ulimit counts memory in KiB and files in blocks of 512 bytes. */
const boundedGit = `ulimit -d "$1" 2>/dev/null; ulimit -f "$2" 2>/dev/null; shift 2; exec git "$@"`;

const commandProgram = ({ args, bounds }: GitCommand): readonly [string, readonly string[]] => {
  if (bounds === undefined) return ["git", args];
  const { memoryBytes, fileBytes } = bounds;
  const limits = [Math.ceil(memoryBytes / 1024), Math.ceil(fileBytes / 512)].map(String);
  return ["sh", ["-c", boundedGit, "git", ...limits, ...args]];
};

const start = (command: GitCommand, descriptors: readonly number[]): Program => {
  const [program, args] = commandProgram(command);
  return startProgram({
    program,
    args,
    env: commandEnvironment(command),
    cwd: command.repository ?? "/",
    group: command.group ?? "own",
    descriptors,
    graceMs: command.stopBy === "hang-up" ? (command.hangUpMs ?? hangUpMs) : 0,
  });
};

const notStarted = (error: unknown): GitError => {
  const code = error instanceof StartError ? error.code : String(error);
  // ENOENT means either a missing program or a missing working directory.
  const message =
    code === "ENOENT"
      ? "git could not be started. It is not installed, or the repository's directory does not exist."
      : `git could not be started (${code}).`;
  return new GitError({ code: "git_failed", message });
};

/** Ends git's children, so that git itself fails as if they had failed, and cleans up. */
const signalChildren = async (child: Program): Promise<void> => {
  const pid = child.pid();
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  for (const id of children.split(" ").filter(Boolean)) {
    try {
      process.kill(Number(id), "SIGTERM");
    } catch {
      // It ended meanwhile.
    }
  }
};

const hangUp = ({ sockets }: Program): void => {
  sockets.get(0)?.end();
  sockets.get(1)?.resume(); // a full pipe would keep it from finishing
};

/** Tries one way of ending it after the other until it has ended. */
const stop = (child: Program, command: GitCommand, end: Effect.Effect<number | null>): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (command.stopBy === "hang-up" && child.isRunning()) {
      hangUp(child);
      yield* Effect.raceFirst(end, Effect.sleep(command.hangUpMs ?? hangUpMs));
      if (child.isRunning()) {
        yield* Effect.promise(() => signalChildren(child));
        yield* Effect.raceFirst(end, Effect.sleep(killAfter));
      }
    }
    child.signal("SIGTERM");
    yield* Effect.raceFirst(end, Effect.sleep(killAfter));
    child.signal("SIGKILL");
    yield* end;
  });

const converse = (command: GitCommand, child: Program): GitProcess => {
  const { sockets } = child;
  // Without a connection of its own, a stream is one that is over.
  const at = (descriptor: number): Duplex => sockets.get(descriptor) ?? new PassThrough().end();
  const [stdin, stdout, stderr] = [at(0), at(1), at(2)];
  stdin.resume(); // otherwise its end by git would not be noticed
  const silent = Deferred.makeUnsafe<void>();
  const fallSilent = (): void => void Deferred.doneUnsafe(silent, Effect.void);
  if (stderr.closed) fallSilent();
  else stderr.once("close", fallSilent);
  let words = Buffer.alloc(0);
  let stderrLength = 0;
  stderr.on("data", (chunk: Buffer) => {
    stderrLength += chunk.length;
    words = Buffer.concat([words, chunk]).subarray(-stderrBytes);
  });
  return {
    stdin,
    stdout,
    channel: at(3),
    stderr: () => words.toString("utf8"),
    said: () => stderrLength,
    silent: Deferred.await(silent),
    exit: Effect.map(
      Effect.promise(() => child.ended),
      (end) => (end === "lost" ? null : end.code),
    ),
    isLost: Effect.map(
      Effect.promise(() => child.ended),
      (end) => end === "lost",
    ),
    terminate: Effect.sync(() => (command.stopBy === "hang-up" ? hangUp(child) : child.signal("SIGTERM"))),
  };
};

const converseWith = Effect.fnUntraced(function* (command: GitCommand, descriptors: readonly number[]) {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => start(command, descriptors)),
    (program) => Effect.sync(program.abandon), // at last, or because the wait for its start was given up
  );
  yield* Effect.tryPromise({ try: () => child.started, catch: notStarted });
  return yield* Effect.acquireRelease(
    Effect.sync(() => converse(command, child)),
    ({ exit }) => stop(child, command, exit),
  );
});

/** Writes to git's input as fast as git reads it. An ended git reads no more, so the rest is discarded. */
export const feed = (stdin: Writable, bytes: Uint8Array): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (stdin.destroyed || stdin.writableEnded) return resume(Effect.void);
    stdin.write(bytes, () => resume(Effect.void));
  });

/** Starts git for a conversation. It ends with the scope. */
export const spawnGit = (command: GitCommand): Effect.Effect<GitProcess, GitError, Scope.Scope> =>
  converseWith(command, [0, 1, 2, 3]);

interface Collected {
  readonly bytes: Buffer;
  readonly truncated: boolean;
}

const collect = (stdout: Readable, limit: number, count: (bytes: number) => void): Effect.Effect<Collected> =>
  Effect.callback((resume) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (truncated: boolean): void => {
      stdout.removeAllListeners("data");
      resume(Effect.succeed({ bytes: Buffer.concat(chunks).subarray(0, limit), truncated }));
    };
    stdout.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      count(chunk.length);
      if (size > limit) finish(true);
    });
    if (stdout.closed) finish(false);
    else stdout.once("close", () => finish(false));
  });

/** A question on descriptor 3 is a prompt or a ref's name. */
const maxQuestionBytes = 4096;

const late = ({ args }: GitCommand, how: string): GitError =>
  new GitError({ code: "timeout", message: `git ${args[0] ?? ""} ${how} and was stopped.` });

/** Fails if nothing has moved for a while. */
const failIfStalled = (request: GitRequest, countBytes: () => number): Effect.Effect<never, GitError> => {
  const { stallMs } = request;
  if (stallMs === undefined) return Effect.never;
  return Effect.gen(function* () {
    for (let before = -1; before !== countBytes(); yield* Effect.sleep(stallMs)) before = countBytes();
    return yield* late(request, `made no progress for ${stallMs / 1000} s`);
  });
};

const runToItsEnd = Effect.fnUntraced(function* (request: GitRequest) {
  const { answer, stdin } = request;
  const git = yield* converseWith(request, [
    ...(stdin === undefined ? [] : [0]),
    1,
    2,
    ...(answer === undefined ? [] : [3]),
  ]);
  if (answer !== undefined)
    listen(git.channel, maxQuestionBytes, (line) => void git.channel.write(`${answer(line)}\n`));
  if (stdin !== undefined) git.stdin.end(stdin);
  let writtenBytes = 0;
  const end = Effect.gen(function* () {
    const standardOutput = yield* collect(git.stdout, request.maxOutputBytes ?? maxOutputBytes, (bytes) => {
      writtenBytes += bytes;
    });
    return { ...standardOutput, exitCode: standardOutput.truncated ? 0 : yield* git.exit };
  });
  const {
    bytes: stdout,
    truncated,
    exitCode,
  } = yield* Effect.raceFirst(
    end,
    failIfStalled(request, () => writtenBytes + git.said()),
  );
  // Its last output may still be on its way when it has ended. A descendant that keeps the pipe open is not waited for.
  yield* Effect.raceFirst(git.silent, Effect.sleep(lastWordsFor));
  const stderr = git.stderr();
  if (exitCode === null && (yield* git.isLost)) {
    const message = `git ${request.args[0] ?? ""} was ended, because the process that starts git has died.`;
    return yield* new GitError({ code: "git_failed", message });
  }
  if (exitCode === null || !(request.expect ?? [0]).includes(exitCode)) {
    return yield* gitFailure(request.args[0] ?? "", { stderr, repository: request.repository });
  }
  const output: GitOutput = { exitCode, stdout, truncated, stderr };
  return output;
});

/**
 * Runs git to its end and keeps its output. Codes outside `expect` fail as `git_failed`, a full disk as
 * `disk_full`, a missed deadline as `timeout`.
 */
export const runGit = (request: GitRequest): Effect.Effect<GitOutput, GitError> => {
  const deadline = request.deadlineMs ?? deadlineMs;
  return Effect.scoped(runToItsEnd(request)).pipe(
    Effect.timeoutOrElse({
      duration: deadline,
      orElse: () => Effect.fail(late(request, `took longer than ${deadline / 1000} s`)),
    }),
  );
};

/** @returns the sentence that refuses this output of `git version`. Null if the version is new enough. */
export const gitVersionFault = (output: string): string | null => {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec(output) ?? [];
  const [oldestMajor, oldestMinor] = oldestVersion;
  const isNewEnough =
    Number(major) === oldestMajor ? Number(minor) >= oldestMinor : Number(major) > oldestMajor;
  return isNewEnough
    ? null
    : `git ${oldestVersion.join(".")} or newer is required. This machine has "${output}".`;
};

/** Checks the machine's git: it must be installed and new enough for the service. @returns its version line. */
export const requireGit: Effect.Effect<string, GitError> = Effect.gen(function* () {
  const { stdout } = yield* runGit({ args: ["version"], repository: null });
  const version = stdout.toString("utf8").trim();
  const fault = gitVersionFault(version);
  return fault === null ? version : yield* new GitError({ code: "git_failed", message: fault });
});
