/**
 * Passes requests and WebSockets on: the service to a sandbox's daemon, the daemon to the agent runtime and to ports on
 * 127.0.0.1 (spec.md 4.3, api.md 3 and 7). Shared by both, since what must be right is the same.
 *
 *  Q1 Bytes flow with back-pressure both ways; nothing is collected, nothing open is timed out.
 *  Q2 A client that leaves takes its upstream request with it.
 *  Q3 An upstream that dies mid-way breaks the client's connection: half an answer never looks whole.
 *  Q4 Nothing is ever sent twice.
 *  Q5 Nothing an upstream answers can end the process that passes it on.
 *
 * Built on node:http on both sides: with kept connections it costs about 1.15 times the CPU of undici's dispatch
 * (56 to 60 against 48 to 52 µs a request, same run), passes `Expect`, 1xx, trailers both ways and upgrades, which
 * undici refuses or drops, and the bundle starts sooner without a second HTTP library.
 */
import {
  Agent,
  request as httpRequest,
  ServerResponse,
  type ClientRequest,
  type InformationEvent,
  type IncomingMessage,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pairs, requestHeaders, responseHeaders, type HeaderRules } from "./headers.ts";

/** Where a request goes: never a host of the client's (threats.md X03, X04), decided by whoever made this. */
export interface Upstream extends HeaderRules {
  readonly at: { readonly host: string; readonly port: number } | { readonly socketPath: string };
  readonly path: string;
  /** Raw headers to add, name before value. */
  readonly headers: readonly string[];
}

/** Answers a client whose upstream did not answer; called while no byte of an answer was sent. */
export type AnswerUnreachable = (response: ServerResponse, to: Upstream) => void;

const UPGRADE = ["connection", "Upgrade", "upgrade", "websocket"];

/** Idle connections are let go before an upstream resets them: a reset met by a request could not be retried (Q4). */
const IDLE_MS = 1000;

export class Proxy {
  readonly #agent = new Agent({ keepAlive: true, timeout: IDLE_MS, scheduling: "lifo" });
  readonly #upgraded = new Set<Duplex>();
  readonly #unreachable: AnswerUnreachable;

  constructor(unreachable: AnswerUnreachable) {
    this.#unreachable = unreachable;
  }

  /** Passes one request on and its answer back. */
  pass(request: IncomingMessage, response: ServerResponse, to: Upstream): void {
    // Q2: the client may have left while it was decided where its request goes.
    if (response.closed) return;
    const upstream = open(request, to, this.#agent);
    upstream.on("continue", () => response.writeContinue());
    upstream.on("information", (early) => passHints(early, response));
    const broken = (): void => {
      if (response.headersSent) response.destroy();
      else this.#unreachable(response, to);
    };
    upstream.on("response", (answer) => passAnswer(answer, response, { to, broken }));
    upstream.on("error", broken);
    // Q2: `close` without `finish` is a client that went away.
    response.on("close", () => {
      if (!response.writableFinished) upstream.destroy();
    });
    passBody(request, upstream);
  }

  /**
   * Passes a WebSocket's handshake on and joins the two connections when the upstream agrees.
   *
   * @param response made by `responseOn` for the client's socket.
   */
  upgrade(
    request: IncomingMessage,
    response: ServerResponse,
    { socket: client, head, to }: { readonly socket: Duplex; readonly head: Buffer; readonly to: Upstream },
  ): void {
    if (client.destroyed) return;
    const upstream = open(request, to, false);
    // Q2: as long as nobody reads the client its end goes unseen; `read(0)` finds it and takes nothing.
    const look = (): void => void client.read(0);
    const leave = (): void => void client.destroy();
    client.on("readable", look).on("end", leave);
    upstream.on("upgrade", (answer, socket, upstreamHead) => {
      client.off("readable", look).off("end", leave);
      if (!writeHead(response, answer, { status: 101, more: UPGRADE, to })) {
        socket.destroy();
        return broken();
      }
      response.flushHeaders();
      response.detachSocket(client as Socket);
      if (upstreamHead.length > 0) client.write(upstreamHead);
      if (head.length > 0) socket.write(head);
      this.#join(client, socket);
    });
    const broken = (): void => {
      if (response.headersSent) client.destroy();
      else this.#unreachable(response, to);
    };
    upstream.on("response", (answer) => passAnswer(answer, response, { to, broken }));
    upstream.on("error", broken);
    client.on("close", () => upstream.destroy());
    upstream.end();
  }

  /** Ends what is still open. */
  close(): void {
    for (const socket of this.#upgraded) socket.destroy();
    this.#agent.destroy();
  }

  #join(client: Duplex, upstream: Duplex): void {
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#upgraded.add(from);
      if ("setNoDelay" in from && typeof from.setNoDelay === "function") from.setNoDelay(true);
      if ("setTimeout" in from && typeof from.setTimeout === "function") from.setTimeout(0);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#upgraded.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }
}

/** Answers on the bare socket of an upgrade request with Node's own serialiser. */
export const responseOn = (request: IncomingMessage, socket: Duplex): ServerResponse => {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  socket.on("error", () => socket.destroy());
  response.assignSocket(socket as Socket);
  response.on("finish", () => {
    if (response.statusCode === 101) return;
    socket.end();
    // A refused peer may keep its half open, and no timeout of Node's would end it.
    // oxlint-disable-next-line no-restricted-globals -- the adapter to Node's sockets, below Effect
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  });
  return response;
};

const LINGER_MS = 2000;

const open = (request: IncomingMessage, to: Upstream, agent: Agent | false): ClientRequest => {
  const headers = [...requestHeaders(request, to), ...to.headers];
  if (agent === false) headers.push(...UPGRADE);
  return httpRequest({
    ...to.at,
    method: request.method,
    path: to.path,
    headers,
    agent,
    setHost: false,
  });
};

const passBody = (request: IncomingMessage, upstream: ClientRequest): void => {
  // An upload is told to the upstream at once: it may answer, or agree to `Expect`, before the first byte of it.
  upstream.flushHeaders();
  request.pipe(upstream, { end: false });
  request.on("end", () => {
    if (addTrailers(request, upstream)) upstream.end();
    else upstream.destroy();
  });
};

/**
 * Q5: an answer that Node's writer does not take (a control character in the reason, a status of no class) is as good
 * as none: it must end one request, and never the process that passes it on.
 */
const writeHead = (
  response: ServerResponse,
  answer: IncomingMessage,
  { status, more, to }: { readonly status: number; readonly more: readonly string[]; readonly to: Upstream },
): boolean => {
  try {
    response.writeHead(status, answer.statusMessage, [...responseHeaders(answer, to), ...more]);
    return true;
  } catch {
    // What was refused is kept on the response, and would be refused again with whatever is answered instead.
    response.statusMessage = "";
    return false;
  }
};

/** Passes trailers on; false where Node's writer does not take them (Q5). */
const addTrailers = (from: IncomingMessage, to: ServerResponse | ClientRequest): boolean => {
  try {
    if (from.rawTrailers.length > 0) to.addTrailers(pairs(from.rawTrailers));
    return true;
  } catch {
    return false;
  }
};

/** Early hints help and bind nobody: the ones Node's writer does not take are dropped. */
const passHints = ({ statusCode, headers }: InformationEvent, response: ServerResponse): void => {
  if (statusCode !== 103 || headers["link"] === undefined) return;
  try {
    response.writeEarlyHints({ link: headers["link"] });
  } catch {
    // Q5: the answer itself is still to come.
  }
};

const passAnswer = (
  answer: IncomingMessage,
  response: ServerResponse,
  { to, broken }: { readonly to: Upstream; readonly broken: () => void },
): void => {
  if (!writeHead(response, answer, { status: answer.statusCode ?? 502, more: [], to })) {
    answer.destroy();
    return broken();
  }
  // Headers of a slow stream arrive before its first event.
  response.flushHeaders();
  answer.pipe(response, { end: false });
  answer.on("end", () => {
    if (addTrailers(answer, response)) response.end();
    else response.destroy();
  });
  // Q3: Node reports an answer cut short as an error, never as an end.
  answer.on("error", () => response.destroy());
};
