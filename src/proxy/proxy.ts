/**
 * Forwards requests and WebSockets: from the service to a sandbox's daemon, and from the daemon to the agent runtime
 * and to ports on 127.0.0.1 (spec.md 4.3, api.md 3 and 7). Both share this code, since both need the same guarantees.
 *
 *  Q1 Bytes flow with back-pressure both ways. Nothing is collected, and an open stream never times out.
 *  Q2 When a client leaves, its upstream request ends. A client that closes its half of the connection has left.
 *  Q3 An upstream that dies mid-way breaks the client's connection: a partial answer never looks complete.
 *  Q4 Nothing is ever sent twice.
 *  Q5 No answer of an upstream can end the process that passes it on.
 *  Q6 Waiting for the first byte of an answer has a time limit (watch.ts). An answer that has begun has none.
 *
 * Built on node:http on both sides: its strict parser reads both, it passes `Expect`, 1xx, trailers both ways and
 * upgrades, and the daemon's bundle starts without a second HTTP library. docs/decisions/0035 has the figures.
 */
import {
  Agent,
  request as httpRequest,
  type ClientRequest,
  type ClientRequestArgs,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { addTrailers, breakOff, destroySoon, passBody, passHints, writeHead } from "./answer.ts";
import { hasBody, requestHeaders, type HeaderRules } from "./headers.ts";
import { Tunnels } from "./tunnel.ts";
import { LIMITS, Watch, type Limits, type WatchedRequest } from "./watch.ts";

/** How an upstream is dialled. `createConnection` opens a connection for one request, which is not used again. */
export type UpstreamPlace =
  | { readonly host: string; readonly port: number }
  | { readonly socketPath: string }
  | { readonly createConnection: () => Duplex };

/** Where a request goes. The caller decides it, never the client (threats.md X03, X04). */
export interface Upstream extends HeaderRules {
  readonly at: UpstreamPlace;
  readonly path: string;
  /** Raw headers to add, name before value. */
  readonly headers: readonly string[];
  /** Called when the client sends something while its request is under way: an upload, an upgraded connection. */
  readonly heard?: () => void;
  /** Called when the request is under way. The returned function is called once, at the end of its answer or upgraded connection. */
  readonly opened?: () => () => void;
}

/**
 * Why there is no answer to pass on: the upstream is not listening or hung up (502), it does not answer (504), or the
 * client's body stopped coming (408).
 */
export type Failure = "unreachable" | "silent" | "body_stalled";

/** Answers a client in the upstream's place. Called only before the first byte of an answer. */
export type AnswerFailure = (response: ServerResponse, to: Upstream, why: Failure) => void;

/** Ends a request that is under way. */
export type Cut = (refuse: (response: ServerResponse) => void) => void;

const UPGRADE = ["connection", "Upgrade", "upgrade", "websocket"];

/** Idle connections are closed before an upstream resets them: a request that met a reset could not be retried (Q4). */
const IDLE_MS = 1000;

/** Node's agent computes a connection's name four times for each request; a short name is enough. */
class Connections extends Agent {
  constructor() {
    super({ keepAlive: true, timeout: IDLE_MS, scheduling: "lifo" });
  }

  override getName(
    options: { readonly host?: unknown; readonly port?: unknown; readonly socketPath?: unknown } = {},
  ) {
    return options.socketPath === undefined
      ? `${String(options.host)}:${String(options.port)}`
      : String(options.socketPath);
  }
}

export class Proxy {
  readonly #agent = new Connections();
  readonly #tunnels: Tunnels;
  readonly #watch: Watch;
  readonly #limits: Limits;
  readonly #answerFailure: AnswerFailure;

  constructor(answerFailure: AnswerFailure, limits: Limits = LIMITS) {
    this.#answerFailure = answerFailure;
    this.#limits = limits;
    this.#tunnels = new Tunnels(limits.halfOpenMs);
    this.#watch = new Watch(limits);
  }

  /**
   * Passes one request on, and its answer back.
   *
   * @returns a function that ends it early. An answer that has begun breaks off; otherwise `refuse` sends one.
   */
  pass(request: IncomingMessage, response: ServerResponse, to: Upstream): Cut {
    // Q2: the client may have left while the request's destination was decided.
    if (response.closed) return () => undefined;
    const upstream = open(request, to, { agent: this.#agent });
    const waiting = this.#waitFor(upstream, { request, response, to });
    const onClose = to.opened?.();
    response.on("close", () => {
      onClose?.();
      // Q2: `close` without `finish` means that the client went away.
      if (!response.writableFinished) upstream.destroy();
      waiting.end();
      // The answer is complete: anything that the client still sends is discarded, for a short time.
      if (!request.complete && !request.destroyed) {
        upstream.destroy();
        request.resume();
        destroySoon(request.socket, () => request.complete);
      }
    });
    if (hasBody(request)) sendBody(request, upstream, to.heard);
    else upstream.end();
    return (refuse) => {
      waiting.end();
      if (response.headersSent) breakOff(response);
      else if (!response.closed) refuse(response);
      upstream.destroy();
    };
  }

  /**
   * Passes a WebSocket's handshake on, and joins the two connections when the upstream agrees.
   *
   * @param response made by `responseOn` for the client's socket.
   */
  upgrade(
    request: IncomingMessage,
    response: ServerResponse,
    { socket: client, head, to }: { readonly socket: Duplex; readonly head: Buffer; readonly to: Upstream },
  ): void {
    if (client.destroyed) return;
    const upstream = open(request, to, { agent: false, more: UPGRADE });
    const onClose = to.opened?.();
    const waiting = this.#waitFor(upstream, { request, response, to });
    // Q2: if nothing reads from the client, its end is not noticed. `read(0)` notices it and takes nothing.
    const look = (): void => void client.read(0);
    const leave = (): void => void client.destroy();
    client.on("readable", look).on("end", leave);
    upstream.on("upgrade", (answer, socket, upstreamHead) => {
      waiting.end();
      client.off("readable", look).off("end", leave);
      // The upstream switched to a protocol that was not requested.
      const isWebSocket = answer.headers.upgrade?.trim().toLowerCase() === "websocket";
      if (!isWebSocket || !writeHead(response, answer, { ...to, more: UPGRADE })) {
        socket.destroy();
        return waiting.fail("unreachable");
      }
      response.flushHeaders();
      response.detachSocket(client as Socket);
      if (upstreamHead.length > 0) client.write(upstreamHead);
      if (head.length > 0) socket.write(head);
      if (to.heard !== undefined) client.on("data", to.heard);
      this.#tunnels.join(client, socket);
    });
    client.on("close", () => {
      onClose?.();
      waiting.end();
      // After the upgrade, the tunnel handles the other side.
      if (response.statusCode !== 101) upstream.destroy();
    });
    upstream.end();
  }

  /** Sends a request of our own, without a body. Its answer does not matter. */
  tell({ at, path, host, headers }: Upstream, method: string): void {
    const own = ["host", host, ...headers];
    httpRequest({ ...at, method, path, headers: own, setHost: false })
      .on("response", (answer) => answer.resume())
      .on("error", () => undefined)
      .end();
  }

  /** Ends all open connections. */
  close(): void {
    this.#tunnels.close();
    this.#agent.destroy();
    this.#watch.close();
  }

  #waitFor(upstream: ClientRequest, passing: Omit<Passing, "upstream">): Waiting {
    return new Waiting(
      { ...passing, upstream },
      { watch: this.#watch, limits: this.#limits, answerFailure: this.#answerFailure },
    );
  }
}

/** Opens a proxy in the caller's scope, whose end closes it. */
export const openProxy = (answerFailure: AnswerFailure): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new Proxy(answerFailure)),
    (proxy) => Effect.sync(() => proxy.close()),
  );

interface Passing {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly to: Upstream;
  readonly upstream: ClientRequest;
}

interface Means {
  readonly watch: Watch;
  readonly limits: Limits;
  readonly answerFailure: AnswerFailure;
}

/** A request that has no answer yet (Q6). */
class Waiting implements WatchedRequest {
  readonly #passing: Passing;
  readonly #means: Means;
  #since = performance.now();
  #bytes = 0;
  readonly #place: number;
  #isSending: boolean;
  /** The client waits for the upstream's 100 (Continue) before it sends. */
  #isHeldBack: boolean;
  #isOver = false;
  #why: Failure = "unreachable";
  #answer: IncomingMessage | null = null;

  constructor(passing: Passing, means: Means) {
    const { request, response, upstream } = passing;
    this.#passing = passing;
    this.#means = means;
    this.#isSending = hasBody(request);
    this.#isHeldBack = request.headers.expect !== undefined;
    if (this.#isHeldBack) upstream.once("continue", () => this.#agreed());
    passHints(upstream, response);
    upstream.on("response", (answer) => this.#answered(answer));
    upstream.on("error", () => {
      // A complete answer stays complete even if sending the request failed. For an incomplete one without a length and
      // chunks, Node reads a reset as the end.
      if (this.#answer?.complete === false) breakOff(response);
    });
    // Node does not report every end without an answer as an error (an unrequested 101, for example).
    upstream.on("close", () => {
      if (!this.#isOver) this.fail(this.#why);
    });
    this.#place = means.watch.add(this);
  }

  /** The answer has come, or its client has left. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#means.watch.delete(this.#place);
  }

  fail(why: Failure): void {
    const { response, to } = this.#passing;
    this.end();
    if (response.headersSent) breakOff(response);
    else if (!response.closed) this.#means.answerFailure(response, to, why);
  }

  look(now: number): void {
    const { upstream, request } = this.#passing;
    const { connectMs, answerMs, bodyMs } = this.#means.limits;
    if (upstream.socket?.connecting !== false) return this.#hold(now, connectMs, "silent");
    if (!this.#isSending || this.#isHeldBack) return this.#hold(now, answerMs, "silent");
    this.#isSending = !request.complete;
    // The sender is not late while bytes arrive, or while the upstream does not ask for more.
    const { bytesRead } = request.socket;
    if (bytesRead !== this.#bytes || upstream.writableNeedDrain || request.complete) this.#since = now;
    this.#bytes = bytesRead;
    this.#hold(now, bodyMs, "body_stalled");
  }

  #hold(now: number, limitMs: number, why: Failure): void {
    if (now - this.#since < limitMs) return;
    this.#why = why;
    this.#passing.upstream.destroy(new Error(why));
  }

  #agreed(): void {
    this.#isHeldBack = false;
    this.#since = performance.now();
    this.#passing.response.writeContinue();
  }

  #answered(answer: IncomingMessage): void {
    const { response, to } = this.#passing;
    this.end();
    this.#answer = answer;
    if (writeHead(response, answer, to)) return passBody(answer, response);
    answer.destroy();
    this.fail("unreachable");
  }
}

interface Opening {
  readonly agent: Agent | false;
  readonly more?: readonly string[];
}

const open = (request: IncomingMessage, to: Upstream, { agent, more = [] }: Opening): ClientRequest => {
  const headers = requestHeaders(request, to, to.headers);
  headers.push(...more);
  const options: ClientRequestArgs & { readonly allowHalfOpen: boolean } = {
    ...to.at,
    method: request.method ?? "GET",
    path: to.path,
    headers,
    // Node asks an agent for a connection before it asks `createConnection`.
    ...("createConnection" in to.at ? {} : { agent }),
    setHost: false,
    // A side of an upgraded connection that has finished sending may still read.
    allowHalfOpen: agent === false,
  };
  return httpRequest(options);
};

/** Passes on a request's body. An aborted request is noticed by the response's end. */
const sendBody = (request: IncomingMessage, upstream: ClientRequest, onData?: () => void): void => {
  let isSilent = true;
  request.on("data", (chunk: Buffer) => {
    isSilent = false;
    onData?.();
    if (!upstream.destroyed && !upstream.write(chunk)) request.pause();
  });
  upstream.on("drain", () => request.resume());
  request.on("end", () => {
    isSilent = false;
    if (addTrailers(request, upstream)) upstream.end();
    else upstream.destroy();
  });
  // The upstream gets the head of an upload at once: it may answer, or agree to `Expect`, before the first byte.
  process.nextTick(() => {
    if (isSilent) upstream.flushHeaders();
  });
};
