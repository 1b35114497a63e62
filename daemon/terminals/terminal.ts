/**
 * One command that a person runs in the sandbox, in a terminal or with pipes (decision 0084).
 *
 *  T1 Output is numbered by its bytes. A person who comes back names the bytes that she has, and gets the rest once. Of
 *     what came while she was away, the last `TERMINAL_OUTPUT_KEPT` bytes are kept. Each connection first hears at which
 *     byte its output begins, because older bytes may be gone.
 *  T2 Nothing grows without a bound: if the person's connection is full, the command's output is not read, and the
 *     command waits. Her input waits in the same way. While she is away, output is read, and the oldest is dropped.
 *  T3 A command with pipes ends with its connection, because the pipe at the other end is broken too.
 */
import { constants } from "node:os";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { TERMINAL_OUTPUT_KEPT, type TerminalSize } from "../../src/domain/session/terminal.ts";
import { ProcessGroup, type Exit, type Launch, type LaunchFailure, type Pipes } from "../agent/process.ts";

/** The connection of the person who uses a terminal. */
export interface Peer {
  /** The number of the output's byte that comes next. Called once, before any output. */
  readonly outputFrom: (at: number) => void;
  /** @param onSent is called when the connection has taken the bytes */
  readonly output: (bytes: Buffer, onSent: () => void) => void;
  /** Standard error of a command with pipes. */
  readonly errorOutput: (bytes: Buffer, onSent: () => void) => void;
  readonly exited: (code: number) => void;
  /** Another connection took the terminal over. */
  readonly replaced: () => void;
  /** May the client send more? */
  readonly holdInput: (isHeld: boolean) => void;
}

export interface TerminalOptions {
  /** Who opened it. */
  readonly userId: string;
  /** The whole command. With a size, it begins with the terminal program. */
  readonly launch: Launch;
  /** Null means pipes. */
  readonly size: TerminalSize | null;
  /** The command has ended. */
  readonly onExit: () => void;
}

/** Bytes that wait for a connection before the command waits, and the rest at which it goes on. */
const UNSENT_MAX = 256 * 1024;
const UNSENT_LOW = 64 * 1024;
/** Longest text of a frame (src/sandbox/native/terminal-frames.h). */
const FRAME_TEXT_MAX = 32 * 1024;
/** The exit code for a command that could not be started, as in shells. */
const NOT_STARTED = 126;
const SIGNALLED = 128;

/** A frame of the terminal program's standard input. Rows 0: the size stays. */
const frame = (text: Buffer, { rows, cols }: TerminalSize = { rows: 0, cols: 0 }): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(text.length);
  head.writeUInt16LE(rows, 4);
  head.writeUInt16LE(cols, 6);
  return Buffer.concat([head, text]);
};

const exitCode = (exit: Result.Result<Exit, LaunchFailure>): number => {
  if (Result.isFailure(exit)) return NOT_STARTED;
  const { code, signal } = exit.success;
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return code ?? SIGNALLED + (numbers[signal ?? ""] ?? 0);
};

export class Terminal {
  readonly userId: string;
  readonly hasSize: boolean;
  readonly #group: ProcessGroup;
  #pipes: Pipes | null = null;
  #peer: Peer | null = null;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  /** Bytes of the whole output. */
  #total = 0;
  #unsent = 0;
  #code: number | null = null;
  #isOver = false;
  /** The newest size, while the command does not read. */
  #nextSize: TerminalSize | null = null;

  constructor({ userId, launch, size, onExit }: TerminalOptions) {
    this.userId = userId;
    this.hasSize = size !== null;
    const talk = (pipes: Pipes): void => {
      this.#pipes = pipes;
      pipes.stdout.on("data", (chunk: Buffer) => this.#take(chunk));
      pipes.stdin.on("drain", () => this.#drained());
      if (size !== null) pipes.stdin.write(frame(Buffer.alloc(0), size));
    };
    this.#group = Effect.runSync(
      ProcessGroup.start({ ...launch, talk }, (_, chunk) => this.#takeError(chunk)),
    );
    // The kernel may have some output left, which must be read before the group ends.
    void this.#group.ended.then(() => {
      this.#isOver = true;
      this.#pipes?.stdout.resume();
    });
    void Effect.runPromise(Effect.result(this.#group.exit)).then((exit) => {
      if (Result.isFailure(exit)) this.#takeError(Buffer.from(`${exit.failure.message}\n`));
      this.#code = exitCode(exit);
      this.#peer?.exited(this.#code);
      onExit();
    });
  }

  get hasEnded(): boolean {
    return this.#code !== null;
  }

  get isAttended(): boolean {
    return this.#peer !== null;
  }

  /** Gives the terminal to a connection. @param after the bytes of output that the client has */
  attach(peer: Peer, after: number): void {
    this.#peer?.replaced();
    this.#peer = peer;
    this.#unsent = 0;
    let at = this.#total - this.#keptBytes;
    const from = Math.min(Math.max(after, at), this.#total);
    peer.outputFrom(from);
    for (const chunk of this.#kept) {
      const skippedBytes = Math.min(Math.max(0, from - at), chunk.length);
      at += chunk.length;
      if (skippedBytes < chunk.length) this.#send(chunk.subarray(skippedBytes));
    }
    // The connection before may have been full (T2).
    if (this.#unsent < UNSENT_LOW) this.#pipes?.stdout.resume();
    if (this.#code !== null) peer.exited(this.#code);
  }

  /** The connection is gone. Output is read on (T2). */
  detach(peer: Peer): void {
    if (this.#peer !== peer) return;
    this.#peer = null;
    this.#unsent = 0;
    this.#pipes?.stdout.resume();
  }

  /** What the person types. */
  input(bytes: Buffer): void {
    const stdin = this.#pipes?.stdin;
    if (stdin === undefined || stdin.destroyed || stdin.writableEnded) return;
    if (!this.hasSize) stdin.write(bytes);
    else
      for (let at = 0; at < bytes.length; at += FRAME_TEXT_MAX)
        stdin.write(frame(bytes.subarray(at, at + FRAME_TEXT_MAX)));
    if (stdin.writableNeedDrain) this.#peer?.holdInput(true);
  }

  /** The end of the input of a command with pipes. */
  endInput(): void {
    if (!this.hasSize) this.#pipes?.stdin.end();
  }

  resize(size: TerminalSize): void {
    const stdin = this.#pipes?.stdin;
    if (!this.hasSize || stdin === undefined || stdin.destroyed) return;
    // While it does not read, only the last size counts (T2).
    if (stdin.writableNeedDrain) this.#nextSize = size;
    else stdin.write(frame(Buffer.alloc(0), size));
  }

  /** Ends the command. Returns when its process group is gone. */
  get end(): Effect.Effect<void> {
    return this.#group.end;
  }

  #drained(): void {
    const size = this.#nextSize;
    this.#nextSize = null;
    if (size !== null) this.resize(size);
    this.#peer?.holdInput(false);
  }

  #take(chunk: Buffer): void {
    this.#total += chunk.length;
    this.#kept.push(chunk);
    this.#keptBytes += chunk.length;
    while (this.#keptBytes > TERMINAL_OUTPUT_KEPT) this.#dropOldest();
    this.#send(chunk);
  }

  #dropOldest(): void {
    const [oldest] = this.#kept;
    if (oldest === undefined) return;
    const excess = Math.min(this.#keptBytes - TERMINAL_OUTPUT_KEPT, oldest.length);
    this.#keptBytes -= excess;
    if (excess === oldest.length) this.#kept.shift();
    else this.#kept[0] = oldest.subarray(excess);
  }

  #send(chunk: Buffer): void {
    this.#peer?.output(chunk, this.#counted(chunk.length));
  }

  /** In a terminal, only the programs before the command write to it, such as one that cannot be found. */
  #takeError(chunk: Buffer): void {
    if (this.hasSize) this.#take(chunk);
    else this.#peer?.errorOutput(chunk, this.#counted(chunk.length));
  }

  /** Counts bytes that wait for the connection. @returns a function to call when it has taken them */
  #counted(bytes: number): () => void {
    const peer = this.#peer;
    this.#unsent += bytes;
    if (this.#unsent > UNSENT_MAX && !this.#isOver) this.#pipes?.stdout.pause();
    return () => {
      if (this.#peer !== peer) return;
      this.#unsent -= bytes;
      if (this.#unsent < UNSENT_LOW) this.#pipes?.stdout.resume();
    };
  }
}
