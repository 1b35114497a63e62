/**
 * `platform sessions shell`: a terminal in a session's sandbox, or one command there with pipes.
 *
 *  H1 The person's terminal is as before when the program ends, whatever ends it.
 *  H2 With a terminal at both ends every key goes to the sandbox, Ctrl-C too. Only `~.` at the beginning of a line is ours.
 *  H3 If the connection is lost, the terminal in the sandbox waits. The program comes back to it with the number of bytes that
 *     it has, and prints the rest. A command with pipes ends instead.
 */
import { constants } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import type { ReadStream } from "node:tty";
import type { Client } from "../../client.ts";
import { command, type Call } from "../../command.ts";
import { EXIT, Failure, usageFailure } from "../../failure.ts";
import { safeLine } from "../../terminal.ts";
import { sessionId } from "../../words.ts";

/** Longest message. The daemon accepts twice as much. */
const MESSAGE_MAX = 32 * 1024;
/** How much may wait for the connection before no more input is read, and how often that is looked at. */
const UNSENT_MAX = 1024 * 1024;
const LOOK_AGAIN_MS = 20;
/** The pause before each attempt to come back. */
const AGAIN_MS = 1000;
/** A server that stays silent counts as unreachable after this time. */
const OPEN_WITHIN_MS = 30_000;
const NORMAL = 1000;
/** The service's own reasons begin here: coming back would not help (docs/use/terminal.md). */
const FIRST_OWN = 4000;

const NEW_LINES = new Set(["\r", "\n", "\u0003", "\u0004"]);

/** Finds `~.` at the beginning of a line (H2). `~~` sends one `~`. */
export class Escapes {
  #isAtStart = true;
  #isHeld = false;

  /** @returns what to send, and whether the person leaves */
  read(text: string): { readonly send: string; readonly leaves: boolean } {
    let send = "";
    for (const key of text) {
      if (this.#isHeld) {
        this.#isHeld = false;
        if (key === ".") return { send, leaves: true };
        send += key === "~" ? key : `~${key}`;
      } else if (key === "~" && this.#isAtStart) {
        this.#isHeld = true;
        continue;
      } else send += key;
      this.#isAtStart = NEW_LINES.has(key);
    }
    return { send, leaves: false };
  }
}

/** How a connection ended. */
type End =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "lost"; readonly wasOpen: boolean };

/** What the service says in a text message (docs/use/terminal.md). */
interface Said {
  readonly output_from?: number;
  readonly error_output?: string;
  readonly exit?: number;
}

interface Wish {
  readonly client: Client;
  readonly path: string;
  readonly words: readonly string[];
  readonly input: AsyncIterable<Buffer>;
  /** Both ends are terminals. */
  readonly isTerminal: boolean;
  /** How long the sandbox waits for a lost connection, ms. */
  readonly keptMs: number;
  readonly note: (line: string) => void;
  /** Takes the command's output. */
  readonly write: (bytes: Uint8Array) => void;
}

class Shell {
  readonly #wish: Wish;
  readonly #id = crypto.randomUUID();
  #socket: WebSocket | null = null;
  /** The number of the output's byte that comes next (H3). The service says it first, and each byte adds one. */
  #received = 0;
  /** The sandbox may know the terminal. */
  #hasBegun = false;
  #hasLeft = false;
  readonly #opened = Promise.withResolvers<void>();

  constructor(wish: Wish) {
    this.#wish = wish;
  }

  /** @returns the command's exit code, or null if the person left */
  async run(): Promise<number | null> {
    const { isTerminal, keptMs, note } = this.#wish;
    let until = 0;
    while (!this.#hasLeft) {
      // oxlint-disable-next-line no-await-in-loop -- one connection after the other
      const end = await this.#connect();
      if (this.#hasLeft) return null;
      if (end.kind === "exited") return end.code;
      if (end.kind === "refused") throw new Failure(EXIT.refused, "terminal_ended", { message: end.message });
      const now = performance.now();
      if (end.wasOpen) {
        until = now + keptMs;
        if (isTerminal) note("The connection was lost. Trying again; ~. leaves.");
      }
      if (!isTerminal || now > until)
        throw new Failure(EXIT.tryAgain, "broken_off", {
          message: "The connection to the terminal was lost. A proxy in between must pass WebSockets on.",
        });
      // oxlint-disable-next-line no-await-in-loop -- before the next one
      await pause(AGAIN_MS);
    }
    return null;
  }

  /** Passes standard input on, until its end or until the person leaves. */
  async takeInput(): Promise<void> {
    const { input, isTerminal } = this.#wish;
    const escapes = new Escapes();
    await this.#opened.promise;
    // Latin-1 keeps each byte as it is.
    for await (const chunk of input) {
      const { send, leaves } = isTerminal
        ? escapes.read(chunk.toString("latin1"))
        : { send: chunk.toString("latin1"), leaves: false };
      await this.#send(Buffer.from(send, "latin1"));
      if (leaves) return this.leave();
    }
    this.#say({ end: true });
  }

  resize(): void {
    this.#say({ resize: this.#size });
  }

  /** Ends the connection and the command. */
  leave(): void {
    this.#hasLeft = true;
    this.#socket?.close(NORMAL);
  }

  get #size() {
    return { rows: process.stdout.rows || 24, cols: process.stdout.columns || 80 };
  }

  #query(): string {
    const { words, isTerminal } = this.#wish;
    const { rows, cols } = this.#size;
    const query = new URLSearchParams({ id: this.#id });
    if (isTerminal)
      for (const [name, value] of Object.entries({ rows, cols })) query.set(name, String(value));
    for (const word of words) query.append("command", word);
    if (this.#hasBegun) query.set("after", String(this.#received));
    return query.toString();
  }

  #connect(): Promise<End> {
    const { client, path } = this.#wish;
    const socket = client.socket(`${path}?${this.#query()}`);
    socket.binaryType = "arraybuffer";
    let end: End = { kind: "lost", wasOpen: false };
    return new Promise((resolve) => {
      const late = AbortSignal.timeout(OPEN_WITHIN_MS);
      late.addEventListener("abort", () => {
        if (socket.readyState === WebSocket.CONNECTING) socket.close();
      });
      socket.addEventListener("open", () => {
        end = { kind: "lost", wasOpen: true };
        this.#hasBegun = true;
        this.#socket = socket;
        this.#opened.resolve();
        if (this.#hasLeft) socket.close(NORMAL);
        else if (this.#wish.isTerminal) this.resize();
      });
      socket.addEventListener("message", ({ data }) => {
        end = this.#take(data) ?? end;
      });
      // `close` follows, and says what there is to say.
      socket.addEventListener("error", () => undefined);
      socket.addEventListener("close", ({ code, reason }) => {
        this.#socket = null;
        if (code >= FIRST_OWN)
          end = { kind: "refused", message: reason || "The service closed the terminal." };
        resolve(end);
      });
    });
  }

  #take(data: unknown): End | null {
    if (data instanceof ArrayBuffer) {
      this.#received += data.byteLength;
      this.#wish.write(new Uint8Array(data));
      return null;
    }
    const report = JSON.parse(String(data)) as Said;
    if (report.output_from !== undefined) this.#received = report.output_from;
    if (report.error_output !== undefined) process.stderr.write(Buffer.from(report.error_output, "base64"));
    return report.exit === undefined ? null : { kind: "exited", code: report.exit };
  }

  #say(word: object): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(word));
  }

  /** While there is no connection, keys are lost, as on a line that is cut. */
  async #send(bytes: Buffer<ArrayBuffer>): Promise<void> {
    for (let at = 0; at < bytes.length; at += MESSAGE_MAX) {
      if (this.#socket?.readyState !== WebSocket.OPEN) return;
      this.#socket.send(bytes.subarray(at, at + MESSAGE_MAX));
      // oxlint-disable-next-line no-await-in-loop -- what waits must not grow
      while ((this.#socket?.bufferedAmount ?? 0) > UNSENT_MAX) await pause(LOOK_AGAIN_MS);
    }
  }
}

/** Puts the person's terminal into raw mode. @returns a function that restores it (H1) */
const raw = (input: ReadStream): (() => void) => {
  input.setRawMode(true);
  const restore = (): void => void input.setRawMode(false);
  process.once("exit", restore);
  return restore;
};

const SIGNALLED = 128;

interface InSession {
  readonly pid: string;
  readonly sid: string;
}

const terminalPath = ({ pid, sid }: InSession): string => `/projects/${pid}/sessions/${sid}/terminal`;

/** What a command prints that needs no input. @throws Failure that has the command's error output, if it fails */
export const outputInSandbox = async (
  words: readonly string[],
  client: Client,
  params: InSession,
): Promise<Buffer> => {
  await client.call("GET /v1/projects/:pid/sessions/:sid/terminal", { params });
  const output: Uint8Array[] = [];
  const session = new Shell({
    client,
    path: terminalPath(params),
    words,
    input: (async function* () {})(),
    isTerminal: false,
    keptMs: 0,
    note: () => undefined,
    write: (bytes) => void output.push(bytes),
  });
  const [code] = await Promise.all([session.run(), session.takeInput()]);
  if (code === 0) return Buffer.concat(output);
  throw new Failure(EXIT.refused, "command_failed", {
    message: `A command in the sandbox ended with ${code}.`,
  });
};

/**
 * Runs a command in a session's sandbox with this program's standard input and output, in a terminal if both are one. Sets the exit code.
 *
 * @param words the program and its arguments. None: a shell
 */
export const runInSandbox = async (
  words: readonly string[],
  { api, input, note }: Pick<Call<unknown, unknown>, "api" | "input" | "note">,
  params: InSession,
): Promise<void> => {
  const client = api();
  // A refusal of the WebSocket itself would have no text.
  const { value } = await client.call("GET /v1/projects/:pid/sessions/:sid/terminal", { params });
  const stdin = input.raw();
  const isTerminal = stdin.isTTY && process.stdout.isTTY;
  const session = new Shell({
    client,
    path: terminalPath(params),
    words,
    input: stdin,
    write: (bytes) => void process.stdout.write(bytes),
    isTerminal,
    keptMs: value.kept_ms,
    note: (line) => note(`\r\n${safeLine(line)}\r`),
  });
  const restore = isTerminal ? raw(stdin) : () => undefined;
  const resize = (): void => session.resize();
  if (isTerminal) process.stdout.on("resize", resize);
  for (const signal of ["SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => {
      session.leave();
      process.exitCode = SIGNALLED + constants.signals[signal];
    });
  try {
    const typing = session.takeInput();
    // Standard input may end with an error when the program ends.
    typing.catch(() => undefined);
    const code = await session.run();
    if (code !== null) process.exitCode = code;
  } finally {
    process.stdout.off("resize", resize);
    restore();
  }
};

export const shell = command({
  name: "sessions shell",
  about: "Open a terminal in a session's sandbox, or run a command there",
  takes: ["SESSION"],
  rest: "COMMAND",
  inProject: true,
  notes:
    "Without COMMAND, it is a shell in the workspace, as the agent's user. Write `--` before COMMAND. The exit code is the command's. `~.` at the beginning of a line leaves and ends it. If the connection is lost, the program comes back to the terminal for up to ten minutes. If standard input or output is no terminal, the command gets pipes.",
  run: async ({ given, rest, json, project, ...call }) => {
    if (json) throw usageFailure("`platform sessions shell` has no --json.");
    await runInSandbox(rest, call, { pid: await project(), sid: sessionId(given.SESSION) });
    return "writes";
  },
});
