/**
 * The daemon's HTTP surface (spec.md 4.3): on its port and on its unix socket, with the same routes and rules. Every
 * request except the health report's must first present a signed user context (spec.md 5.1).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { ListenOptions, Socket } from "node:net";
import type { Duplex } from "node:stream";
import * as Result from "effect/Result";
import {
  SERVICE_ROLE,
  USER_CONTEXT_HEADER,
  verifyUserContext,
  type UserContext,
  type UserContextRefusal,
} from "../../src/domain/sandbox/user-context.ts";
import { ATTACHMENT_MAX } from "../../src/domain/conversation/attachment.ts";
import type { TerminalWish } from "../../src/domain/session/terminal.ts";
import { requestAmbiguity, upgradeAmbiguity } from "../../src/proxy/ambiguity.ts";
import { handshakeFault } from "../../src/proxy/handshake.ts";
import { headerValues } from "../../src/proxy/headers.ts";
import { Proxy, type Upstream } from "../../src/proxy/proxy.ts";
import { responseOn } from "../../src/proxy/tunnel.ts";
import {
  type ControlAnswer,
  answerError,
  answerFailure,
  answerHandshake,
  answerJson,
  answerMalformed,
  answerNotReady,
  answerRefusal,
  answerUnauthenticated,
  CLAIMED,
  NO_API,
  NOT_READY,
  NOT_SUPPORTED,
  OPEN_BY_SOCKET,
  SERVICE_ONLY,
} from "./answer.ts";
import type { Attachments } from "../agent/attachments.ts";
import { BODY_LIMIT_BYTES, readBytes, readJson } from "./body.ts";
import type { ControlSurface } from "./control.ts";
import { answerConversation } from "../conversation/conversation-stream.ts";
import type { ConversationFeed } from "../conversation/feed.ts";
import type { LogRing } from "../logs/log-ring.ts";
import { LogStreams } from "../logs/log-stream.ts";
import { listeningPorts } from "./ports.ts";
import type { Report } from "../report.ts";
import { decideRoute, type Route } from "./route.ts";
import type { SavingCall, SavingSurface } from "../saving/surface.ts";
import type { SteeringSurface } from "../agent/steering.ts";
import { openTerminalSocket } from "../terminals/terminal-socket.ts";
import type { Terminals } from "../terminals/terminals.ts";
import { visitorHeaders } from "./visitor.ts";
import type { WorkspaceRead } from "../workspace/reading.ts";
import type { WorkspaceSurface } from "../workspace/workspace.ts";

export interface ServerOptions {
  readonly token: string;
  readonly sessionId: string;
  /** Null if the runtime has no HTTP API. */
  readonly runtimePort: number | null;
  /** Ports that `/proxy/{port}` never reaches. */
  readonly blockedPorts: readonly number[];
  readonly report: Report;
  readonly ring: LogRing;
  /** The commands of people. Absent: this server has none. */
  readonly terminals?: Terminals;
  /** The agent's conversation. Absent: the runtime has none that can be followed. */
  readonly feed?: ConversationFeed;
  /** Aborts the agent's current turn. False if the agent was idle. `isLast`: no turn may follow it. */
  readonly abort: (isLast: boolean) => Promise<boolean>;
  /** Takes back that no turn may follow. Absent: no turn begins by a message. */
  readonly goOn?: () => void;
  /** Refresh and env. */
  readonly control: ControlSurface;
  /** Saved work, for the service alone. Absent: this server has none. */
  readonly saving?: SavingSurface;
  /** Reads the workspace while the agent works. Absent: this server has no workspace. */
  readonly workspace?: WorkspaceSurface;
  /** Messages, interrupts, answers and models. Absent: the runtime has no conversation. */
  readonly steering?: SteeringSurface;
  /** Absent: the runtime has no conversation. */
  readonly attachments?: Attachments;
}

/** Headers must arrive within this time (api.md 1). */
const HEADERS_TIMEOUT_MS = 10_000;
/** How often connections are checked for it. */
const CHECK_EVERY_MS = 5000;
const KEEP_ALIVE_MS = 65_000;
/** How long a request for the next turn's end stays open. */
const TURN_WAIT_MS = 25_000;
/** How long a request for the boot's end stays open. */
const BOOT_WAIT_MS = 500;

export class DaemonServer {
  readonly #options: ServerOptions;
  readonly #proxy = new Proxy(answerFailure);
  readonly #servers: Server[] = [];
  readonly #logs: LogStreams;
  #heard = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#logs = new LogStreams(options.ring);
  }

  /** Whether there was a connection to the unix socket since the last call. */
  wasHeard(): boolean {
    const wasHeard = this.#heard;
    this.#heard = false;
    return wasHeard;
  }

  /** Listens on one more address: a port or a unix socket. */
  listen(where: ListenOptions): Promise<void> {
    const server = createServer({
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // An upload has no time limit (api.md 7: no idle limit on an open stream).
      requestTimeout: 0,
    });
    server.on("request", (request, response) => this.#handle(request, response));
    server.on("checkContinue", (request, response) => this.#handle(request, response));
    server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
    server.on("connect", (request, socket) => {
      answerRefusal(responseOn(request, socket), {
        status: 405,
        code: "method_not_allowed",
        error: "CONNECT is not supported.",
      });
    });
    if (where.path !== undefined) server.on("connection", () => (this.#heard = true));
    this.#servers.push(server);
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(where, () => resolve());
    });
  }

  /** Ends every connection. */
  close(): void {
    this.#proxy.close();
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const ambiguity = requestAmbiguity(request);
    if (ambiguity !== null) return answerMalformed(response, ambiguity);
    const route = this.#route(request);
    if (route.kind === "health") return this.#health(route.isHeld, response);
    const refusal = this.#refusal(request);
    if (refusal !== null) return answerUnauthenticated(response, refusal);
    if (route.kind === "refused") return answerRefusal(response, route.refusal);
    if (route.kind === "abort") return this.#abort(request, response);
    if (route.kind === "continue") return this.#goOn(request, response);
    if (route.kind === "prepare") return answerError(response, CLAIMED.status, CLAIMED.body);
    if (route.kind === "claim") return void this.#claimedAlready(request, response);
    if (route.kind === "logs") return this.#logs.answer(request, response);
    if (route.kind === "ports")
      return answerJson(response, 200, { ports: listeningPorts(this.#options.blockedPorts) });
    if (route.kind === "terminal") return this.#endTerminal(route.wish, request, response);
    if (route.kind === "turn") return this.#turn(route.after, response);
    if (route.kind === "conversation") return this.#conversation(route.after, response);
    if (route.kind === "output") return this.#output(route.item, response);
    if (route.kind === "workspace") return void this.#workspace(route.read, response);
    if (route.kind === "control" || route.kind === "steering")
      return void this.#control(route, request, response);
    if (route.kind === "saving") return void this.#saving(route.call, request, response);
    if (route.kind === "attachment") return void this.#attachment(route.id, request, response);
    if (this.#isNoApi(route)) return answerError(response, NO_API.status, NO_API.body);
    const to = this.#upstream(route, request);
    if (to === null) return answerNotReady(response);
    this.#pass(() => this.#proxy.pass(request, response, to), response);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const response = responseOn(request, socket);
    const ambiguity = upgradeAmbiguity(request);
    if (ambiguity !== null) return answerMalformed(response, ambiguity);
    const fault = handshakeFault(request);
    if (fault !== null) return answerHandshake(response, fault);
    const refusal = this.#refusal(request);
    if (refusal !== null) return answerUnauthenticated(response, refusal);
    const route = this.#route(request);
    if (route.kind === "refused") return answerRefusal(response, route.refusal);
    const { terminals } = this.#options;
    if (route.kind === "terminal" && request.method === "GET" && terminals !== undefined) {
      response.detachSocket(socket as Socket);
      const { wish } = route;
      const from = { terminals, wish, userId: this.#contextOf(request).user_id };
      return void openTerminalSocket({ request, socket, head }, from);
    }
    if (!("path" in route)) {
      return answerRefusal(response, {
        status: 400,
        code: "bad_request",
        error: "This path does not accept WebSockets.",
      });
    }
    if (this.#isNoApi(route)) return answerError(response, NO_API.status, NO_API.body);
    const to = this.#upstream(route, request);
    if (to === null) return answerNotReady(response);
    this.#pass(() => this.#proxy.upgrade(request, response, { socket, head, to }), response);
  }

  #route(request: IncomingMessage): Route {
    return decideRoute({ method: request.method ?? "", url: request.url ?? "" }, this.#options.blockedPorts);
  }

  #verified(request: IncomingMessage): Result.Result<UserContext, UserContextRefusal> {
    const { token, sessionId } = this.#options;
    return verifyUserContext(headerValues(request, USER_CONTEXT_HEADER), {
      token,
      sessionId,
      // oxlint-disable-next-line no-restricted-properties -- this file is the adapter to the outside world
      nowMs: Date.now(),
    });
  }

  #refusal(request: IncomingMessage): UserContextRefusal | null {
    const verification = this.#verified(request);
    return Result.isFailure(verification) ? verification.failure : null;
  }

  /** The context of a request that was not refused. */
  #contextOf(request: IncomingMessage): UserContext {
    return Result.getOrThrow(this.#verified(request));
  }

  #endTerminal({ id }: TerminalWish, request: IncomingMessage, response: ServerResponse): void {
    if (request.method === "GET") return answerError(response, OPEN_BY_SOCKET.status, OPEN_BY_SOCKET.body);
    this.#options.terminals?.close(id, this.#contextOf(request).user_id);
    answerJson(response, 200, {});
  }

  #output(item: string, response: ServerResponse): void {
    const output = this.#options.feed?.output(item) ?? null;
    if (output !== null) return answerJson(response, 200, { output });
    answerError(response, 404, { error: "The output of this item is not kept.", code: "not_found" });
  }

  #isNoApi({ kind }: Route): boolean {
    return kind === "runtime" && this.#options.runtimePort === null;
  }

  /** Null while the runtime cannot take requests. */
  #upstream(route: Extract<Route, { path: string }>, request: IncomingMessage): Upstream | null {
    if (route.kind === "port") {
      return { ...loopback(route.port, route.path), ...visitorHeaders(request, route.port) };
    }
    const { report, runtimePort } = this.#options;
    return report.serving && runtimePort !== null ? loopback(runtimePort, route.path) : null;
  }

  /** Node refuses to send some targets that its parser accepts, e.g. with bytes above 0xff. */
  #pass(start: () => void, response: ServerResponse): void {
    try {
      start();
    } catch {
      answerError(response, 400, {
        error: "The request target or a header contains invalid characters.",
        code: "bad_request",
      });
    }
  }

  async #control(
    route: Extract<Route, { kind: "control" | "steering" }>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { control, steering = () => Promise.resolve(NOT_SUPPORTED) } = this.#options;
    const read = await readJson(request, response);
    const call = (body: unknown): Promise<ControlAnswer> =>
      route.kind === "control" ? control(route.name, body) : steering(route.name, body);
    const answer = "value" in read ? await call(read.value) : read;
    if ("done" in answer) answerJson(response, 200, answer.done);
    else if (answer === NOT_READY) answerNotReady(response);
    else answerError(response, answer.status, answer.body);
  }

  async #saving(call: SavingCall, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { saving } = this.#options;
    if (this.#contextOf(request).role !== SERVICE_ROLE)
      return answerError(response, SERVICE_ONLY.status, SERVICE_ONLY.body);
    if (saving === undefined) return answerNotReady(response);
    await saving(call, request, response);
  }

  async #attachment(id: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { attachments } = this.#options;
    if (attachments === undefined) return answerError(response, NOT_SUPPORTED.status, NOT_SUPPORTED.body);
    const size = attachments.size(id);
    // One that is here already is answered as stored, whatever its body.
    const read = await readBytes(request, response, size ?? ATTACHMENT_MAX);
    const answer = Buffer.isBuffer(read) ? attachments.keep(id, read) : read;
    if ("done" in answer) answerJson(response, 200, answer.done);
    else answerError(response, answer.status, answer.body);
  }

  async #workspace(read: WorkspaceRead, response: ServerResponse): Promise<void> {
    const { workspace = () => Promise.resolve(NOT_READY) } = this.#options;
    const answer = await workspace(read);
    if ("done" in answer) answerJson(response, 200, answer.done);
    else answerError(response, answer.status, answer.body);
  }

  #health(isHeld: boolean, response: ServerResponse): void {
    const { report } = this.#options;
    const answer = () => answerJson(response, 200, report.health());
    if (!isHeld) return answer();
    const watch = (tell: () => void) => report.whenBootTold(tell);
    answerWhen(response, { watch, withinMs: BOOT_WAIT_MS, answer });
  }

  /** Answers when a turn after that number has ended, or after a while with the present state. */
  #turn(after: number, response: ServerResponse): void {
    const { report } = this.#options;
    const answer = () => answerJson(response, 200, report.turn);
    const watch = (tell: () => void) => report.whenTurnEnded(after, tell);
    answerWhen(response, { watch, withinMs: TURN_WAIT_MS, answer });
  }

  #conversation(after: number, response: ServerResponse): void {
    const { feed } = this.#options;
    if (feed !== undefined) return answerConversation(feed, after, response);
    answerError(response, NOT_SUPPORTED.status, NOT_SUPPORTED.body);
  }

  /** The same session's claim, repeated because its answer was lost. Another session's context is refused before. */
  async #claimedAlready(request: IncomingMessage, response: ServerResponse): Promise<void> {
    await readBytes(request, response, BODY_LIMIT_BYTES);
    answerJson(response, 200, { session_id: this.#options.sessionId });
  }

  /** After an abort for a sandbox that stays, because its work could not be saved or something waits for its agent. */
  #goOn(request: IncomingMessage, response: ServerResponse): void {
    if (this.#contextOf(request).role !== SERVICE_ROLE)
      return answerError(response, SERVICE_ONLY.status, SERVICE_ONLY.body);
    this.#options.goOn?.();
    answerJson(response, 200, {});
  }

  /** The service itself ends a turn only before it ends the sandbox. A person goes on with the next message. */
  #abort(request: IncomingMessage, response: ServerResponse): void {
    const isLast = this.#contextOf(request).role === SERVICE_ROLE;
    this.#options.abort(isLast).then(
      (wasAborted) => answerJson(response, 200, { aborted: wasAborted }),
      () =>
        answerError(response, 502, {
          error: "The agent runtime did not accept the abort.",
          code: "upstream_unreachable",
        }),
    );
  }
}

interface Held {
  /** Calls back when there is something to answer. @returns a function that cancels it. */
  readonly watch: (tell: () => void) => () => void;
  /** After this time it is answered in any case. */
  readonly withinMs: number;
  readonly answer: () => void;
}

/** Answers a request once, as soon as there is something to answer or it has waited long enough. */
const answerWhen = (response: ServerResponse, { watch, withinMs, answer }: Held): void => {
  const tell = (): void => {
    if (!response.writableEnded) answer();
  };
  // oxlint-disable-next-line no-restricted-globals -- this file is the adapter to the outside world
  const late = setTimeout(tell, withinMs);
  const stop = watch(tell);
  response.on("close", () => {
    clearTimeout(late);
    stop();
  });
};

/** The host is always this machine's loopback address, as a number (threats.md X03, X04). */
const loopback = (port: number, path: string): Upstream => ({
  at: { host: "127.0.0.1", port },
  path,
  host: `127.0.0.1:${port}`,
  headers: [],
});
