/**
 * Passes requests and WebSockets on: the service to a sandbox's daemon, the daemon to the agent runtime and to ports on
 * 127.0.0.1 (spec.md 4.3, api.md 3 and 7). Shared by both, since what must be right is the same.
 *
 *  Q1 Bytes flow with back-pressure both ways; nothing is collected, nothing open is timed out.
 *  Q2 A client that leaves takes its upstream request with it. One that closes its half of the connection has left.
 *  Q3 An upstream that dies mid-way breaks the client's connection: half an answer never looks whole.
 *  Q4 Nothing is ever sent twice.
 *  Q5 Nothing an upstream answers can end the process that passes it on.
 *  Q6 Who waits for a first word does not wait for ever (watch.ts); what has begun to be answered has no limit.
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
import { addTrailers, breakOff, destroySoon, passBody, passHints, writeHead } from "./answer.ts";
import { hasBody, requestHeaders, type HeaderRules } from "./headers.ts";
import { Tunnels } from "./tunnel.ts";
import { LIMITS, Watch, type Limits, type Watched } from "./watch.ts";

/** Where a request goes: never a host of the client's (threats.md X03, X04), decided by whoever made this. */
export interface Upstream extends HeaderRules {
  readonly at: { readonly host: string; readonly port: number } | { readonly socketPath: string };
  readonly path: string;
  /** Raw headers to add, name before value. */
  readonly headers: readonly string[];
  /** Called for what the client sends once its request is under way: an upload, an upgraded connection. */
  readonly heard?: () => void;
}

/**
 * Why there is no answer to pass on: nothing listens or it hung up (502), it does not answer (504), or the client's
 * body stopped coming (408).
 */
export type Failure = "unreachable" | "silent" | "body_stalled";

/** Answers a client in the upstream's place; called while no byte of an answer was sent. */
export type AnswerFailure = (response: ServerResponse, to: Upstream, why: Failure) => void;

/** Ends a request that is under way. */
export type Cut = (refuse: (response: ServerResponse) => void) => void;

const UPGRADE = ["connection", "Upgrade", "upgrade", "websocket"];

/** Idle connections are let go before an upstream resets them: a reset met by a request could not be retried (Q4). */
const IDLE_MS = 1000;

/** Node's agent, which asks for a name four times a request: a short one does. */
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
   * Passes one request on and its answer back.
   *
   * @returns ends it early: an answer that has begun breaks off, and where none has, `refuse` gives one.
   */
  pass(request: IncomingMessage, response: ServerResponse, to: Upstream): Cut {
    // Q2: the client may have left while it was decided where its request goes.
    if (response.closed) return () => undefined;
    const upstream = open(request, to, { agent: this.#agent });
    const waiting = this.#waitFor(upstream, { request, response, to });
    response.on("close", () => {
      // Q2: `close` without `finish` is a client that went away.
      if (!response.writableFinished) upstream.destroy();
      waiting.end();
      // All is answered: what the client still sends is nobody's, and is not listened to for long.
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
    const upstream = open(request, to, { agent: false, more: UPGRADE });
    const waiting = this.#waitFor(upstream, { request, response, to });
    // Q2: as long as nobody reads the client its end goes unseen; `read(0)` finds it and takes nothing.
    const look = (): void => void client.read(0);
    const leave = (): void => void client.destroy();
    client.on("readable", look).on("end", leave);
    upstream.on("upgrade", (answer, socket, upstreamHead) => {
      waiting.end();
      client.off("readable", look).off("end", leave);
      // An upstream that speaks something else on the connection was not asked to.
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
      waiting.end();
      // After the upgrade the tunnel decides what becomes of the other side.
      if (response.statusCode !== 101) upstream.destroy();
    });
    upstream.end();
  }

  /** Ends what is still open. */
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
class Waiting implements Watched {
  readonly #passing: Passing;
  readonly #means: Means;
  #since = performance.now();
  #bytes = 0;
  readonly #place: number;
  #isSending: boolean;
  /** The client waits for the upstream's word before it sends. */
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
      // An answer that is all here is whole although sending on failed; of one that is not, Node takes a reset for the
      // end where neither a length nor chunks tell it.
      if (this.#answer?.complete === false) breakOff(response);
    });
    // Not every end of a request without an answer is an error to Node (101 that nobody asked for).
    upstream.on("close", () => {
      if (!this.#isOver) this.fail(this.#why);
    });
    this.#place = means.watch.add(this);
  }

  /** There is an answer, or nobody who would take one. */
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
    // Its sender is not late as long as bytes come, or nobody asks for more of them.
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
    agent,
    setHost: false,
    // A side of an upgraded connection that has said all it had may still listen.
    allowHalfOpen: agent === false,
  };
  return httpRequest(options);
};

/** Passes the body of a request on; whoever breaks off is noticed by the response's end. */
const sendBody = (request: IncomingMessage, upstream: ClientRequest, heard?: () => void): void => {
  let isSilent = true;
  request.on("data", (chunk: Buffer) => {
    isSilent = false;
    heard?.();
    if (!upstream.destroyed && !upstream.write(chunk)) request.pause();
  });
  upstream.on("drain", () => request.resume());
  request.on("end", () => {
    isSilent = false;
    if (addTrailers(request, upstream)) upstream.end();
    else upstream.destroy();
  });
  // An upload is told to the upstream at once: it may answer, or agree to `Expect`, before the first byte of it.
  process.nextTick(() => {
    if (isSilent) upstream.flushHeaders();
  });
};
