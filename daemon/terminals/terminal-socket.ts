/**
 * The WebSocket of a terminal (docs/use/terminal.md): bytes both ways in binary messages, and few words in text messages.
 * The library is loaded with the first terminal, because a start counts in milliseconds.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import {
  PIPES_MAX,
  TERMINAL_CLOSE,
  TERMINAL_MESSAGE_MAX,
  TERMINALS_MAX,
  terminalSize,
  type TerminalWish,
} from "../../src/domain/session/terminal.ts";
import type { Peer } from "./terminal.ts";
import type { NotOpened, Terminals, Use } from "./terminals.ts";

const NORMAL = 1000;
const GOING_AWAY = 1001;
const INVALID = 1008;

/** The refusals, as a code and a sentence. */
const REFUSALS: Readonly<Record<NotOpened, readonly [number, string]>> = {
  gone: [TERMINAL_CLOSE.gone, "This terminal has ended."],
  full: [
    TERMINAL_CLOSE.full,
    `At most ${TERMINALS_MAX} terminals and ${PIPES_MAX} other commands of people run in a session. Close one first.`,
  ],
  no_program: [TERMINAL_CLOSE.gone, "This sandbox has no terminals. Use pipes: they need none."],
};

/** What a client says in a text message. */
type Word =
  | { readonly resize: { readonly rows: number; readonly cols: number } }
  | { readonly end: true }
  /** The number of the output's byte that it processes next. */
  | { readonly read: number };

const parseWord = (text: string): Word | null => {
  try {
    const message: unknown = JSON.parse(text);
    if (typeof message !== "object" || message === null) return null;
    if ("end" in message) return { end: true };
    if ("read" in message)
      return Number.isSafeInteger(message.read) && Number(message.read) >= 0
        ? { read: Number(message.read) }
        : null;
    if (!("resize" in message) || typeof message.resize !== "object" || message.resize === null) return null;
    const { rows, cols } = message.resize as Record<string, unknown>;
    const size = terminalSize(Number(rows), Number(cols));
    return size === null ? null : { resize: size };
  } catch {
    return null;
  }
};

/** One connection. */
class Connection {
  readonly #socket: WebSocket;
  #use: Use | null = null;
  #isClosed: boolean | null = null;
  #isAlive = true;
  readonly #stopAsking: () => void;
  /** The number of the output's byte that is sent next. */
  #next = 0;
  /** The same of the byte that the client reads next. Null if it does not say so, and bytes count as read when they are sent. */
  #read: number | null = null;
  /** Sent output that is not read, and what to call then. */
  readonly #unread: { readonly end: number; readonly sent: () => void }[] = [];

  constructor(socket: WebSocket, askEveryMs: number) {
    this.#socket = socket;
    // oxlint-disable-next-line no-restricted-globals -- this file is the adapter to the outside world
    const asking = setInterval(() => this.#ask(), askEveryMs).unref();
    this.#stopAsking = () => clearInterval(asking);
    socket.on("error", () => undefined);
    socket.on("pong", () => (this.#isAlive = true));
    socket.on("message", (message: Buffer, isBinary) => this.#take(message, isBinary));
    socket.on("close", (code) => this.#left(code === NORMAL || code === GOING_AWAY));
    // Reading begins when the terminal exists.
    socket.pause();
  }

  get peer(): Peer {
    const socket = this.#socket;
    return {
      outputFrom: (at) => {
        this.#next = at;
        socket.send(JSON.stringify({ output_from: at }));
      },
      output: (bytes, onSent) => {
        this.#next += bytes.length;
        const end = this.#next;
        socket.send(bytes, () => this.#sent(end, onSent));
      },
      errorOutput: (bytes, onSent) =>
        socket.send(JSON.stringify({ error_output: bytes.toString("base64") }), onSent),
      exited: (code) => {
        socket.send(JSON.stringify({ exit: code }));
        socket.close(NORMAL);
      },
      replaced: () => socket.close(TERMINAL_CLOSE.replaced, "The terminal was opened elsewhere."),
      holdInput: (isHeld) => (isHeld ? socket.pause() : socket.resume()),
    };
  }

  begin(use: Use): void {
    this.#use = use;
    if (this.#isClosed === null) this.#socket.resume();
    else use.left(this.#isClosed);
  }

  refuse(why: NotOpened): void {
    this.#socket.resume();
    this.#socket.close(...REFUSALS[why]);
  }

  #ask(): void {
    if (!this.#isAlive) return this.#socket.terminate();
    this.#isAlive = false;
    this.#socket.ping();
  }

  #take(message: Buffer, isBinary: boolean): void {
    const use = this.#use;
    if (use === null) return;
    if (isBinary) {
      use.typed();
      return use.terminal.input(message);
    }
    const word = parseWord(message.toString("utf8"));
    if (word === null) this.#socket.close(INVALID, "A text message must be a resize, a read or an end.");
    else if ("read" in word) this.#hasRead(word.read);
    else if ("end" in word) use.terminal.endInput();
    else use.terminal.resize(word.resize);
  }

  #sent(end: number, onSent: () => void): void {
    if (this.#read === null || end <= this.#read) onSent();
    else this.#unread.push({ end, sent: onSent });
  }

  #hasRead(to: number): void {
    this.#read = to;
    while ((this.#unread[0]?.end ?? Infinity) <= to) this.#unread.shift()?.sent();
  }

  #left(isClosed: boolean): void {
    this.#stopAsking();
    this.#isClosed = isClosed;
    this.#use?.left(isClosed);
  }
}

const loadServer = async () => {
  const { WebSocketServer } = await import("ws");
  return new WebSocketServer({ noServer: true, maxPayload: TERMINAL_MESSAGE_MAX, perMessageDeflate: false });
};
let server: ReturnType<typeof loadServer> | null = null;

/** Takes an upgrade whose caller and handshake were checked. */
export const openTerminalSocket = async (
  {
    request,
    socket,
    head,
  }: { readonly request: IncomingMessage; readonly socket: Duplex; readonly head: Buffer },
  {
    terminals,
    wish,
    userId,
  }: { readonly terminals: Terminals; readonly wish: TerminalWish; readonly userId: string },
): Promise<void> => {
  const sockets = await (server ??= loadServer());
  if (socket.destroyed) return;
  const webSocket = await new Promise<WebSocket>((resolve) =>
    sockets.handleUpgrade(request, socket, head, resolve),
  );
  const connection = new Connection(webSocket, terminals.askEveryMs);
  const use = await terminals.open(wish, userId, connection.peer);
  if (typeof use === "string") connection.refuse(use);
  else connection.begin(use);
};
