/**
 * Processes on the agent's side: each has a process group of its own, starts behind the launch prefix that drops its
 * privileges, and ends as a whole group (api.md 7).
 */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";

/** The standard input and output of a process. */
export interface Pipes {
  readonly stdin: Writable;
  readonly stdout: Readable;
}

/** The process to start. It does not inherit the daemon's own environment. */
export interface Launch {
  /** Arguments before the command (LaunchSettings.prefix). */
  readonly prefix: readonly string[];
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Its whole standard input. Absent: none. */
  readonly input?: Uint8Array;
  /** Takes over standard input and output. Absent: the output is collected. */
  readonly talk?: (pipes: Pipes) => void;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/**
 * The result of a finished command. Both outputs are cut off after `MAX_OUTPUT_BYTES` and come from an untrusted
 * program.
 */
export interface Finished extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** The same with its standard output as bytes. `isWhole` is false if the output was cut off. */
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
/** Milliseconds between SIGTERM and SIGKILL for a group. */
const TERM_GRACE_MS = 5000;
/** How long output may still arrive after the process itself has ended. */
const OUTPUT_GRACE_MS = 1000;

type Child = ChildProcessByStdio<Writable | null, Readable, Readable>;

/** A started process group. */
export class ProcessGroup {
  readonly #child: Child;
  /** After that, its number may belong to another group. */
  #gone = false;
  /**
   * Completes when the group's first process has ended, the rest of its group was killed, and the output was read. A
   * process that left the group may hold the output open, so that wait is bounded.
   */
  readonly exit: Effect.Effect<Exit, LaunchFailure>;
  /** Resolves when the first process has ended. Its output may still have to be read. */
  readonly ended: Promise<unknown>;

  private constructor(child: Child) {
    this.#child = child;
    const exit = new Promise<Exit | LaunchFailure>((resolve) => {
      child.once("error", (error) => resolve(new LaunchFailure({ message: error.message })));
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
    this.ended = exit;
    const close = new Promise<void>((resolve) => child.once("close", () => resolve()));
    this.exit = Effect.gen({ self: this }, function* () {
      const end = yield* Effect.promise(() => exit);
      if (end instanceof LaunchFailure) return yield* end;
      yield* this.#signal("SIGKILL");
      this.#gone = true;
      yield* Effect.timeoutOption(
        Effect.promise(() => close),
        OUTPUT_GRACE_MS,
      );
      child.stdout.destroy();
      child.stderr.destroy();
      return end;
    });
  }

  /** `onOutput` gets each chunk of both streams as it arrives. */
  static start(
    launch: Launch,
    onOutput: (stream: "stdout" | "stderr", chunk: Buffer) => void,
  ): Effect.Effect<ProcessGroup> {
    return Effect.sync(() => {
      const [program = "", ...args] = [...launch.prefix, ...launch.command];
      // A group of its own, so that one signal reaches all its children.
      const options = { cwd: launch.cwd, env: { ...launch.env }, detached: true };
      const { input, talk } = launch;
      const child: Child =
        input === undefined && talk === undefined
          ? spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] })
          : spawn(program, args, { ...options, stdio: ["pipe", "pipe", "pipe"] });
      // If a program ends before it has read its input, its exit code says so.
      child.stdin?.on("error", () => undefined);
      if (talk !== undefined && child.stdin !== null) talk({ stdin: child.stdin, stdout: child.stdout });
      else {
        child.stdin?.end(input);
        child.stdout.on("data", (chunk: Buffer) => onOutput("stdout", chunk));
      }
      child.stderr.on("data", (chunk: Buffer) => onOutput("stderr", chunk));
      return new ProcessGroup(child);
    });
  }

  /** Null if it could not be started. */
  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  /** Sends SIGTERM to the whole group, and SIGKILL to the rest after the grace time. Returns when the group is gone. */
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

/** Like `runToEnd`, for binary output, up to that many bytes. */
export const runForBytes = (
  launch: Launch,
  maxBytes: number,
): Effect.Effect<FinishedBytes, LaunchFailure> => {
  const output = { stdout: new Output(maxBytes), stderr: new Output(MAX_OUTPUT_BYTES) };
  return Effect.acquireUseRelease(
    ProcessGroup.start(launch, (stream, chunk) => output[stream].add(chunk)),
    (group) =>
      Effect.map(group.exit, (exit) => ({
        ...exit,
        stdout: output.stdout.bytes,
        stderr: output.stderr.bytes.toString("utf8"),
        isWhole: !output.stdout.isCut,
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
