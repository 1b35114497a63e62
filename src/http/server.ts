/**
 * The service's one listener. Node's own strict parser reads requests. This file refuses ambiguous requests that the
 * parser lets through, gives every answer its request id, and answers unmatched requests in the common error shape.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer";
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import type * as Scope from "effect/Scope";
import { HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http";
import { requestAmbiguity, upgradeAmbiguity } from "../proxy/ambiguity.ts";
import { handshakeFault, type HandshakeFault } from "../proxy/handshake.ts";
import { responseOn } from "../proxy/tunnel.ts";
import { BadRequest, internalError, isApiError, Unavailable, type ApiError } from "./api/errors.ts";
import { statusClass } from "../domain/service/metrics.ts";
import { Measures, nowMs, seconds, Traces, type MeasuresApi, type TracesApi } from "../telemetry/port.ts";
import { InFlight } from "./operating/in-flight.ts";
import type { RouteTable } from "./routes.ts";
import { keepReading } from "./reading/unread.ts";
import {
  answerError,
  answerJson,
  answerRaw,
  apiErrorResponse,
  requestId,
  RequestId,
  RETRY_AFTER_SECONDS,
} from "./answers/respond.ts";

export const HEADERS_TIMEOUT_MS = 10_000;
/** How often Node checks for requests that are too slow. */
export const CHECK_MS = 1000;
/** At shutdown, streams and slow requests that are still open are cut after this time. */
export const DRAIN_MS = 3_000;
const LET_GO = "20 millis";

/** Answers some requests below Effect: the relay, for example, joins two connections byte by byte. */
export interface RawRoutes {
  /** True: accepted. If the route decides later that the request is not its own, it calls `next`. */
  readonly request: (request: IncomingMessage, response: ServerResponse, next: () => void) => boolean;
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;
}

/** The first route that accepts a request handles it. */
export const firstMatch = (routes: readonly RawRoutes[]): RawRoutes => ({
  request: (request, response, next) => routes.some((route) => route.request(request, response, next)),
  upgrade: (request, socket, head) => routes.some((route) => route.upgrade(request, socket, head)),
});

export interface ListenerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** PLATFORM_REQUESTS_AT_ONCE. Absent: unbounded. */
  readonly requestsAtOnce?: number;
}

type App<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, R>;

export interface Listener {
  readonly port: number;
  /**
   * Requests are answered from now on. Before that they get 503, so that the address is known before the start is
   * complete.
   */
  readonly attach: <R>(
    app: App<R>,
    raw: RawRoutes,
  ) => Effect.Effect<void, never, Exclude<R, HttpServerRequest.HttpServerRequest | Scope.Scope>>;
  /** Accepts no new connection, and completes when requests in flight are answered. Anything still open then is cut. */
  readonly drain: Effect.Effect<void>;
}

/** Listens until its scope closes. Then it accepts no new connection, and requests under way finish or are cut. */
export const openListener = Effect.fnUntraced(function* (
  { host, port, requestsAtOnce = Number.POSITIVE_INFINITY }: ListenerOptions,
  routes: RouteTable,
): Effect.fn.Return<Listener, ListenError, Scope.Scope> {
  const scope = yield* Effect.scope;
  // `requestTimeout` would cut long uploads to git and the relay. Bodies have their own limits, where they are read.
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0,
    connectionsCheckingInterval: CHECK_MS,
  });
  const inFlight = new InFlight(requestsAtOnce);
  const measures = yield* Measures;
  const traces = yield* Traces;
  let answer = answerStarting;
  let upgrade = refuseEveryUpgrade;
  server.on("request", (request, response) => {
    response.setHeader("x-request-id", requestId(request));
    // Answers may contain credentials and private data, so no cache keeps an answer unless it says otherwise.
    response.setHeader("cache-control", "no-store");
    response.on("prefinish", () => keepReading(request));
    response.on("finish", () => lingerFor(request));
    answers.set(request.socket, response);
    if (measures.isOn || traces.isOn) measureAnswer(request, response, { measures, traces, routes });
    const fault = protocolFault(request);
    if (fault === null) answer(request, response);
    else answerRaw(response, fault);
  });
  server.on("clientError", refuseMalformed);
  server.on("upgrade", (request, socket, head) => {
    // Node no longer handles the socket's errors: an unhandled reset would end the process.
    socket.on("error", () => socket.destroy());
    if (protocolFault(request, upgradeAmbiguity(request)) !== null) return refuseUpgrade(socket);
    const fault = handshakeFault(request);
    if (fault === null) upgrade(request, socket, head);
    else answerHandshake(request, socket, fault);
  });
  yield* Effect.acquireRelease(listen(server, host, port), () => drain(server));
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    drain: drain(server),
    attach: Effect.fnUntraced(function* (app, raw) {
      const handle = yield* NodeHttpServer.makeHandler(countInFlight(inOneShape(app, routes), inFlight), {
        scope,
      });
      answer = (request, response) => {
        const next = (): void => {
          if (inFlight.take(request, response)) return handle(request, response);
          measures.count("limits_hit_total", { limit: "requests_at_once" });
          answerError(response, busy());
        };
        if (!raw.request(request, response, next)) next();
      };
      upgrade = (request, socket, head) => {
        if (!raw.upgrade(request, socket, head)) refuseUpgrade(socket);
      };
    }),
  };
});

/** A request's trace is its own: what a sender claims to continue counts for nothing. */
const requestSpan = (request: {
  readonly route: string;
  readonly status: string;
  readonly taken: number;
}) => {
  const { route, status, taken } = request;
  const to = nowMs();
  return {
    name: "request",
    sessionId: null,
    key: randomUUID(),
    parent: null,
    from: to - taken * 1000,
    to,
    failed: status === "5xx",
    attributes: { route, status },
  } as const;
};

/** Measures a request until its answer has ended. If its sender goes away before, it counts as `aborted`. */
const measureAnswer = (
  request: IncomingMessage,
  response: ServerResponse,
  {
    measures,
    traces,
    routes,
  }: { readonly measures: MeasuresApi; readonly traces: TracesApi; readonly routes: RouteTable },
): void => {
  const since = seconds();
  response.once("close", () => {
    const route = routes.name(request.method ?? "", request.url ?? "");
    const status = response.writableFinished ? statusClass(response.statusCode) : "aborted";
    const duration = seconds() - since;
    measures.observe("http_request_seconds", { route, status }, duration);
    if (traces.isOn) traces.span(requestSpan({ route, status, taken: duration }));
  });
};

const answerStarting = (_: IncomingMessage, response: ServerResponse): void =>
  answerRaw(
    response,
    new Unavailable({ error: "The service is starting. Try again in a moment.", code: "starting" }),
  );

const busy = () =>
  new Unavailable({ error: "The service has too many open requests. Try again in a moment.", code: "busy" });

/** The id that the answer has already. */
const readRequestId = (request: HttpServerRequest.HttpServerRequest): string =>
  String(NodeHttpServerRequest.toServerResponse(request).getHeader("x-request-id"));

/** Gives a request its id, and stops counting it as soon as its answer is ready. */
const countInFlight = <R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, never, R>,
  inFlight: InFlight,
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.ensuring(
      Effect.provideService(app, RequestId, readRequestId(request)),
      Effect.sync(() => inFlight.answered(NodeHttpServerRequest.toIncomingMessage(request))),
    ),
  );

const refuseEveryUpgrade = (_: IncomingMessage, socket: Duplex, _head: Buffer): void => refuseUpgrade(socket);

/** Every route passes on WebSockets only. An address without WebSockets answers them itself. */
const answerHandshake = (request: IncomingMessage, socket: Duplex, fault: HandshakeFault): void => {
  const { status, error, code, headers } = fault;
  const response = responseOn(request, socket);
  response.setHeader("x-request-id", requestId(request));
  answerJson(response, status, { body: { error, code }, headers });
};

const refuseUpgrade = (socket: Duplex): void => {
  endWith(socket, "404 Not Found", {
    error: "This address does not accept protocol upgrades.",
    code: "not_found",
  });
};

/** Answers on a connection that has no response object. */
const endWith = (
  socket: Duplex,
  status: string,
  error: { readonly error: string; readonly code: string },
) => {
  const body = JSON.stringify(error);
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\nx-request-id: ${randomUUID()}\r\n`;
  // Keep reading, so that a reset does not discard the answer. Close both halves, because Node has no timeout for them.
  socket.resume();
  socket.on("end", () => socket.destroy());
  socket.end(`${head}connection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  destroyLater(socket, () => true);
};

/** How long an answered sender may keep sending an unread body (threats.md W18). */
const LINGER_MS = 2000;

const destroyLater = (socket: Duplex, stillWanted: () => boolean): void => {
  // oxlint-disable-next-line no-restricted-globals -- the adapter to Node's server, below Effect
  setTimeout(() => {
    if (stillWanted()) socket.destroy();
  }, LINGER_MS).unref();
};

/**
 * Closes a connection whose request was answered before its body was complete. Otherwise a sender could hold it open
 * for ever: Node keeps it if the answer does not say `connection: close`, which a relayed answer may not.
 */
const lingerFor = (request: IncomingMessage): void => {
  if (request.complete) return;
  // A weak reference, because the connection holds the incomplete request: a flood of refused requests must not stay in
  // memory longer (W38).
  const unread = new WeakRef(request);
  destroyLater(request.socket, () => unread.deref()?.complete === false);
};

const listen = (server: Server, host: string, port: number) =>
  Effect.callback<void, ListenError>((resume) => {
    server.once("error", (error) => resume(Effect.fail(new ListenError(host, port, error))));
    server.listen(port, host, () => resume(Effect.void));
  });

/** The address cannot be listened on. The start is refused with this sentence. */
export class ListenError extends Error {
  readonly _tag = "ListenError";
  constructor(host: string, port: number, cause: Error) {
    super(`cannot listen on ${host}:${port} (PLATFORM_HOST, PLATFORM_PORT): ${cause.message}`, { cause });
  }
}

const drain = (server: Server) => {
  const closing = Effect.callback<void>((resume) => {
    if (!server.listening) return resume(Effect.void);
    server.close(() => resume(Effect.void));
  });
  // Closes keep-alive connections as they become idle.
  const letGo = Effect.repeat(
    Effect.sync(() => server.closeIdleConnections()),
    Schedule.spaced(LET_GO),
  );
  return Effect.raceFirst(closing, Effect.andThen(letGo, Effect.never)).pipe(
    Effect.timeoutOrElse({
      duration: DRAIN_MS,
      orElse: () => Effect.sync(() => server.closeAllConnections()),
    }),
  );
};

/**
 * Faults that Node accepts and we refuse (threats.md W21, W25): ambiguous framing, targets other than a path, a broken
 * escape.
 */
const protocolFault = (request: IncomingMessage, ambiguity = requestAmbiguity(request)): ApiError | null => {
  if (ambiguity !== null) return malformedRequest(ambiguity);
  const [target = ""] = (request.url ?? "").split("?");
  try {
    decodeURIComponent(target);
    return null;
  } catch {
    return malformedRequest("the path has an invalid percent escape");
  }
};

/** The status of each error of Node's parser: headers over 16 KiB, headers later than 10 s, otherwise malformed. */
const PARSER_STATUSES: Readonly<Record<string, readonly [string, string, string]>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "headers_too_large",
    "the headers are too long",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "headers_timeout", "the headers did not arrive in time"],
};

/** Answers a request that the parser refused (threats.md W20) in the common shape, unless an answer is under way. */
const refuseMalformed = (fault: Error & { readonly code?: string }, socket: Duplex): void => {
  const underWay = answers.get(socket);
  if (!socket.writable || (underWay?.headersSent === true && !underWay.writableEnded)) {
    socket.destroy();
    return;
  }
  const [status, code, what] = PARSER_STATUSES[fault.code ?? ""] ?? [
    "400 Bad Request",
    "malformed_request",
    "it is not valid HTTP/1.1",
  ];
  endWith(socket, status, { error: `The request is malformed: ${what}.`, code });
};

/** The newest answer on each connection. */
const answers = new WeakMap<Duplex, ServerResponse>();

const malformedRequest = (what: string) =>
  new BadRequest({ error: `The request is malformed: ${what}.`, code: "malformed_request" });

/** Turns every failure of the app into an answer: a missing route, an outage, a defect (logged, never shown). */
const inOneShape = <R>(
  app: App<R>,
  routes: RouteTable,
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
  atExactPath(app, routes).pipe(
    Effect.catchCause((cause) =>
      Effect.gen(function* () {
        const error = Cause.squash(cause);
        if (isRouteMiss(error)) return routes.miss(yield* HttpServerRequest.HttpServerRequest);
        if (isApiError(error)) return apiErrorResponse(error);
        if (Cause.hasInterruptsOnly(cause)) return HttpServerResponse.empty({ status: 499 });
        yield* Effect.logError("a request failed", cause);
        return apiErrorResponse(internalError());
      }),
    ),
    Effect.map(withConnectionHeaders),
  );

/** An empty segment must not reach a route as an empty id (threats.md W28). */
const EMPTY_SEGMENT = /\/\/|.\/$/;

const atExactPath = <R>(app: App<R>, routes: RouteTable): App<R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    EMPTY_SEGMENT.test(request.url.split("?")[0] ?? "") ? Effect.succeed(routes.miss(request)) : app,
  );

/** After a 408 or 413 the connection closes. A 503 says when to retry. */
const withConnectionHeaders = (
  response: HttpServerResponse.HttpServerResponse,
): HttpServerResponse.HttpServerResponse => {
  const { status, headers } = response;
  if (status === 408 || status === 413) return HttpServerResponse.setHeader(response, "connection", "close");
  if (status !== 503 || headers["retry-after"] !== undefined) return response;
  return HttpServerResponse.setHeader(response, "retry-after", RETRY_AFTER_SECONDS);
};

const isRouteMiss = (error: unknown): boolean =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound";
