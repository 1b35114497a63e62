/**
 * The connection of a terminal on the page (docs/use/terminal.md).
 *
 *  L1 If the connection is lost, it comes back to the same terminal with the number of the output's next byte. So nothing is shown
 *     twice, and what the sandbox no longer has is counted and said.
 *  L2 The service hears what was drawn, and the command waits for the rest. So output does not fill the page's memory.
 *  L3 Its end has a reason in words: the command's code, the service's own reason, or what the service answers when it is asked.
 */
import { ApiError } from "../api/api.ts";
import { readAt } from "../api/client.ts";
import { makeId } from "../live/outbox.ts";
import { counted } from "../elements/format.ts";

/** The pause before each attempt to come back. */
const AGAIN_MS = 1000;
/** Longest message. The daemon accepts twice as much. */
const MESSAGE_MAX = 32 * 1024;
/** Drawn bytes after which the service hears of them. The command waits at eight times as many. */
const READ_EACH = 32 * 1024;
const NORMAL = 1000;
/** The service's own reasons for an end begin here. */
const FIRST_OWN = 4000;

/** Statuses that stay: signed out, no right, no session, not running. */
const REFUSALS = new Set([401, 403, 404, 409]);

/** What shows the terminal. */
interface Screen {
  size: () => { rows: number; cols: number };
  /** Taken: it is drawn. */
  write: (output: Uint8Array | string, taken?: () => void) => void;
  /** What the reader should know. Empty: all is well. */
  tell: (text: string) => void;
  /** Nothing follows. */
  ended: () => void;
}

/** The address of the terminal's WebSocket. */
const addressOf = (path: string, query: Record<string, string>) => {
  const url = new URL(`${path}/terminal`, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.search = new URLSearchParams(query).toString();
  return url;
};

export class TerminalLine {
  #path;
  #keptMs;
  #screen;
  #id = makeId();
  /** The numbers of the output's next byte: that comes, that is drawn, and of which the service knows that it is drawn (L1, L2). */
  #received = 0;
  #drawn = 0;
  #told = 0;
  /** The sandbox knows the terminal. */
  #hasBegun = false;
  #isOver = false;
  /** When the sandbox no longer waits. */
  #until = 0;
  #socket: WebSocket | null = null;

  /** @param asked path: of the session in the API */
  constructor({ path, keptMs }: { path: string; keptMs: number }, screen: Screen) {
    this.#path = path;
    this.#keptMs = keptMs;
    this.#screen = screen;
  }

  connect() {
    const { rows, cols } = this.#screen.size();
    const socket = new WebSocket(
      addressOf(this.#path, {
        id: this.#id,
        rows: String(rows),
        cols: String(cols),
        ...(this.#hasBegun && { after: String(this.#received) }),
      }),
    );
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    let wasOpen = false;
    socket.addEventListener("open", () => {
      wasOpen = true;
      this.#hasBegun = true;
      this.#screen.tell("");
      // It may have changed meanwhile.
      this.resize();
    });
    socket.addEventListener("message", ({ data }) => this.#take(data));
    socket.addEventListener("close", ({ code, reason }) => {
      this.#socket = null;
      if (wasOpen) this.#until = performance.now() + this.#keptMs;
      void this.#lost(code, reason);
    });
  }

  /** @param bytes While there is no connection, keys are lost, as on a line that is cut. */
  send(bytes: Uint8Array<ArrayBuffer>) {
    for (let at = 0; at < bytes.length; at += MESSAGE_MAX)
      if (this.#socket?.readyState === WebSocket.OPEN)
        this.#socket.send(bytes.subarray(at, at + MESSAGE_MAX));
  }

  resize() {
    this.#say({ resize: this.#screen.size() });
  }

  /** The reader closed it: the command ends. */
  end() {
    this.#isOver = true;
    this.#socket?.close(NORMAL);
  }

  #take(data: ArrayBuffer | string) {
    if (typeof data !== "string") {
      this.#received += data.byteLength;
      const end = this.#received;
      this.#screen.write(new Uint8Array(data), () => this.#draws(end));
      return;
    }
    const { output_from: from, exit } = JSON.parse(data);
    if (from !== undefined) this.#begins(from);
    if (exit !== undefined) this.#over(`The shell ended with code ${exit}.`);
  }

  /** @param from the number of the byte that comes next */
  #begins(from: number) {
    const gap = from - this.#received;
    if (gap > 0) this.#screen.write(`\u001b[0m\r\n[${counted(gap, "byte")} of output lost]\r\n`);
    this.#received = from;
    this.#told = this.#drawn;
    this.#say({ read: this.#drawn });
  }

  #draws(end: number) {
    this.#drawn = end;
    if (end - this.#told < READ_EACH && end !== this.#received) return;
    this.#told = end;
    this.#say({ read: end });
  }

  async #lost(code: number, reason: string) {
    if (this.#isOver) return;
    if (code >= FIRST_OWN) return this.#over(reason || "The service closed the terminal.");
    this.#screen.tell("The connection is lost. Trying again…");
    const refusal = await this.#refusal();
    if (refusal !== null) return this.#over(refusal);
    if (performance.now() > this.#until)
      return this.#over("The connection is lost. A proxy in between must pass WebSockets on.");
    // eslint-disable-next-line no-restricted-globals -- the browser's timer
    setTimeout(() => {
      if (!this.#isOver) this.connect();
    }, AGAIN_MS);
  }

  /** A browser does not say why a WebSocket was refused, so the service is asked. Null: it would open one, or it does not answer. */
  async #refusal() {
    try {
      await readAt<"GET /v1/projects/:pid/sessions/:sid/terminal">(`${this.#path}/terminal`);
      return null;
    } catch (error) {
      return error instanceof ApiError && REFUSALS.has(error.status) ? error.message : null;
    }
  }

  #over(why: string) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#screen.tell(why);
    this.#screen.ended();
  }

  #say(word: object) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(word));
  }
}
