/**
 * Processes of the agent's side: each in a process group of its own, started behind the launch prefix that takes its
 * privileges away, ended as a whole group (api.md 7).
 */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";

/** What to start. Nothing of the daemon's own environment is inherited. */
export interface Launch {
  /** Arguments put before the command (LaunchSettings.prefix). */
  readonly prefix: readonly string[];
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Its whole standard input; none where it is left out. */
  readonly input?: Uint8Array;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** What a finished command left. Both outputs are cut off after `MAX_OUTPUT_BYTES` and come from an untrusted program. */
export interface Finished extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** The same with the bytes of its standard output; `isWhole` is false where those were cut off. */
export interface FinishedBytes extends Exit {
  readonly stdout: Buffer;
  readonly stderr: string;
  readonly isWhole: boolean;
}

/** The program could not be started at all. */
export class LaunchFailure extends Schema.TaggedError<LaunchFailure>()("LaunchFailure", {
  message: Schema.String,
}) {}

const MAX_OUTPUT_BYTES = 512 * 1024;
/** How long a group has between SIGTERM and SIGKILL. */
const TERM_GRACE_MS = 5000;
/** How long output may still come after the process itself has ended. */
const OUTPUT_GRACE_MS = 1000;

type Child = ChildProcessByStdio<Writable | null, Readable, Readable>;

/** A started process group. */
export class ProcessGroup {
  readonly #child: Child;
  /** From then on its number may be another group's. */
  #gone = false;
  /**
   * Completes when the group's first process has ended, what it left of its group was killed, and the output was
   * read. A process that left the group may hold the output open: that is waited for only so long.
   */
  readonly exit: Effect.Effect<Exit, LaunchFailure>;

  private constructor(child: Child) {
    this.#child = child;
    const ended = new Promise<Exit | LaunchFailure>((resolve) => {
      child.once("error", (error) => resolve(new LaunchFailure({ message: error.message })));
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
    const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
    this.exit = Effect.gen({ self: this }, function* () {
      const end = yield* Effect.promise(() => ended);
      if (end instanceof LaunchFailure) return yield* end;
      yield* this.#signal("SIGKILL");
      this.#gone = true;
      yield* Effect.timeoutOption(
        Effect.promise(() => closed),
        OUTPUT_GRACE_MS,
      );
      child.stdout.destroy();
      child.stderr.destroy();
      return end;
    });
  }

  /** `onOutput` gets what either stream brings, as it comes. */
  static start(
    launch: Launch,
    onOutput: (stream: "stdout" | "stderr", chunk: Buffer) => void,
  ): Effect.Effect<ProcessGroup> {
    return Effect.sync(() => {
      const [program = "", ...args] = [...launch.prefix, ...launch.command];
      // A group of its own, so that one signal reaches everything it started.
      const options = { cwd: launch.cwd, env: { ...launch.env }, detached: true };
      const child: Child =
        launch.input === undefined
          ? spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] })
          : spawn(program, args, { ...options, stdio: ["pipe", "pipe", "pipe"] });
      // A program that ends without reading everything says so by its exit code.
      child.stdin?.on("error", () => undefined).end(launch.input);
      child.stdout.on("data", (chunk: Buffer) => onOutput("stdout", chunk));
      child.stderr.on("data", (chunk: Buffer) => onOutput("stderr", chunk));
      return new ProcessGroup(child);
    });
  }

  /** Null when it could not be started. */
  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  /** SIGTERM to the whole group, SIGKILL to what is left of it after the grace time. Returns when it is gone. */
  get end(): Effect.Effect<void> {
    return this.#signal("SIGTERM").pipe(
      Effect.andThen(Effect.timeoutOption(Effect.exit(this.exit), TERM_GRACE_MS)),
      Effect.andThen(this.#signal("SIGKILL")),
      Effect.andThen(Effect.exit(this.exit)),
      Effect.asVoid,
      Effect.uninterruptible,
    );
  }

  #signal(signal: NodeJS.Signals): Effect.Effect<void> {
    return Effect.sync(() => {
      try {
        if (this.#child.pid !== undefined && !this.#gone) process.kill(-this.#child.pid, signal);
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
      }
    });
  }
}

/** Runs a command to its end and collects its output. Interrupting it ends the whole group. */
export const runToEnd = (launch: Launch): Effect.Effect<Finished, LaunchFailure> =>
  Effect.map(runForBytes(launch, MAX_OUTPUT_BYTES), ({ code, signal, stdout, stderr }) => ({
    code,
    signal,
    stdout: stdout.toString("utf8"),
    stderr,
  }));

/** As `runToEnd`, for output that is no text, up to so many bytes of it. */
export const runForBytes = (
  launch: Launch,
  maxBytes: number,
): Effect.Effect<FinishedBytes, LaunchFailure> => {
  const collected = { stdout: new Output(maxBytes), stderr: new Output(MAX_OUTPUT_BYTES) };
  return Effect.acquireUseRelease(
    ProcessGroup.start(launch, (stream, chunk) => collected[stream].add(chunk)),
    (group) =>
      Effect.map(group.exit, (exit) => ({
        ...exit,
        stdout: collected.stdout.bytes,
        stderr: collected.stderr.bytes.toString("utf8"),
        isWhole: !collected.stdout.isCut,
      })),
    (group) => group.end,
  );
};

class Output {
  isCut = false;
  readonly #chunks: Buffer[] = [];
  readonly #maxBytes: number;
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(chunk: Buffer): void {
    const room = this.#maxBytes - this.#length;
    if (chunk.length > room) this.isCut = true;
    if (room <= 0) return;
    this.#chunks.push(chunk.subarray(0, room));
    this.#length += Math.min(room, chunk.length);
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
