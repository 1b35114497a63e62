/**
 * The service's one listener. Node's own strict parser reads requests; what it lets through and should not is refused
 * here, every answer gets its request id, and what no route answers gets the one error shape.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { NodeHttpServer, NodeHttpServerRequest } from "@effect/platform-node";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import type * as Scope from "effect/Scope";
import { HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http";
import { ambiguityOf, upgradeAmbiguityOf } from "../proxy/ambiguity.ts";
import { handshakeFault, type HandshakeFault } from "../proxy/handshake.ts";
import { responseOn } from "../proxy/tunnel.ts";
import { BadRequest, Internal, isApiError, Unavailable, type ApiError } from "./api/errors.ts";
import { InFlight } from "./in-flight.ts";
import { routeMiss } from "./routes.ts";
import {
  answerError,
  answerJson,
  answerRaw,
  apiErrorResponse,
  requestId,
  RETRY_AFTER_SECONDS,
} from "./respond.ts";

const HEADERS_TIMEOUT_MS = 10_000;
/** How often Node looks for requests that are too slow. */
const CHECK_MS = 1000;
/** Streams and slow requests that are still open at the end are cut after this. */
const DRAIN = "3 seconds";
const LET_GO = "20 millis";

/** Answers some requests below Effect: the relay, which joins two connections byte by byte. */
export interface RawRoutes {
  /** True: taken; `next` gives it to whoever comes after, where that takes a while to find out. */
  readonly request: (request: IncomingMessage, response: ServerResponse, next: () => void) => boolean;
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;
}

export interface ListenerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** PLATFORM_REQUESTS_AT_ONCE; none: without a bound. */
  readonly requestsAtOnce?: number;
}

type App<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, R>;

export interface Listener {
  readonly port: number;
  /** From now on requests are answered; until then with 503, so that the address can be known before the start is done. */
  readonly attach: <R>(
    app: App<R>,
    raw: RawRoutes,
  ) => Effect.Effect<void, never, Exclude<R, HttpServerRequest.HttpServerRequest | Scope.Scope>>;
  /** Takes no new connection, and ends when requests in flight are answered; what is still open then is cut. */
  readonly drain: Effect.Effect<void>;
}

/** Listens until its scope closes: then no new connection, and what is under way finishes or is cut. */
export const openListener = Effect.fnUntraced(function* ({
  host,
  port,
  requestsAtOnce = Number.POSITIVE_INFINITY,
}: ListenerOptions): Effect.fn.Return<Listener, ListenError, Scope.Scope> {
  const scope = yield* Effect.scope;
  // `requestTimeout` would cut long uploads to git and the relay: bodies have their own limits where they are read.
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0,
    connectionsCheckingInterval: CHECK_MS,
  });
  const inFlight = new InFlight(requestsAtOnce);
  let answer = answerStarting;
  let upgrade = refuseEveryUpgrade;
  server.on("request", (request, response) => {
    response.setHeader("x-request-id", requestId(request));
    // Answers hold credentials and what only their caller may read: no cache keeps one that does not say otherwise.
    response.setHeader("cache-control", "no-store");
    response.on("finish", () => lingerFor(request));
    answers.set(request.socket, response);
    const fault = protocolFault(request);
    if (fault === null) answer(request, response);
    else answerRaw(response, fault);
  });
  server.on("clientError", refuseMalformed);
  server.on("upgrade", (request, socket, head) => {
    // Node has let go of the socket: a reset that nobody listens for would end the process.
    socket.on("error", () => socket.destroy());
    if (protocolFault(request, upgradeAmbiguityOf(request)) !== null) return refuseUpgrade(socket);
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
      const handle = yield* NodeHttpServer.makeHandler(counted(inOneShape(app), inFlight), { scope });
      answer = (request, response) => {
        const next = (): void =>
          inFlight.take(request, response) ? handle(request, response) : answerError(response, busy());
        if (!raw.request(request, response, next)) next();
      };
      upgrade = (request, socket, head) => {
        if (!raw.upgrade(request, socket, head)) refuseUpgrade(socket);
      };
    }),
  };
});

const answerStarting = (_: IncomingMessage, response: ServerResponse): void =>
  answerRaw(
    response,
    new Unavailable({ error: "The service is starting. Try again in a moment.", code: "starting" }),
  );

const busy = () =>
  new Unavailable({ error: "The service has too many open requests. Try again in a moment.", code: "busy" });

/** Counts a request out as soon as its answer is made. */
const counted = <R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, never, R>,
  inFlight: InFlight,
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.ensuring(
      app,
      Effect.sync(() => inFlight.answered(NodeHttpServerRequest.toIncomingMessage(request))),
    ),
  );

const refuseEveryUpgrade = (_: IncomingMessage, socket: Duplex, _head: Buffer): void => refuseUpgrade(socket);

/** Only WebSockets are passed on, by any route: an address that takes none says so to them. */
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
  // Read on, so that the answer is not lost to a reset; and close both halves, since no timeout of Node's would.
  socket.resume();
  socket.on("end", () => socket.destroy());
  socket.end(`${head}connection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  destroyLater(socket, () => true);
};

/** How long an answered sender may go on with a body that nobody reads (threats.md W18). */
const LINGER_MS = 2000;

const destroyLater = (socket: Duplex, stillWanted: () => boolean): void => {
  // oxlint-disable-next-line no-restricted-globals -- the adapter to Node's server, below Effect
  setTimeout(() => {
    if (stillWanted()) socket.destroy();
  }, LINGER_MS).unref();
};

/**
 * A connection whose request was answered before its body was there is ended, or it would be fed for ever: Node keeps it
 * where the answer does not say `connection: close`, as one that the relay passes on may not.
 */
const lingerFor = (request: IncomingMessage): void => {
  if (request.complete) return;
  // Its connection holds a request that is not complete; a flood of refused ones is not to be held longer (W38).
  const unread = new WeakRef(request);
  destroyLater(request.socket, () => unread.deref()?.complete === false);
};

const listen = (server: Server, host: string, port: number) =>
  Effect.callback<void, ListenError>((resume) => {
    server.once("error", (error) => resume(Effect.fail(new ListenError(host, port, error))));
    server.listen(port, host, () => resume(Effect.void));
  });

/** The address cannot be listened on; the start is refused with this sentence. */
export class ListenError extends Error {
  readonly _tag = "ListenError";
  constructor(host: string, port: number, cause: Error) {
    super(`cannot listen on ${host}:${port} (PLATFORM_HOST, PLATFORM_PORT): ${cause.message}`, { cause });
  }
}

const drain = (server: Server) => {
  const closed = Effect.callback<void>((resume) => {
    if (!server.listening) return resume(Effect.void);
    server.close(() => resume(Effect.void));
  });
  // Connections that a client keeps for its next request are let go as they fall idle.
  const letGo = Effect.repeat(
    Effect.sync(() => server.closeIdleConnections()),
    Schedule.spaced(LET_GO),
  );
  return Effect.raceFirst(closed, Effect.andThen(letGo, Effect.never)).pipe(
    Effect.timeoutOrElse({ duration: DRAIN, orElse: () => Effect.sync(() => server.closeAllConnections()) }),
  );
};

/** What Node accepts and we do not (threats.md W21, W25): ambiguous framing, other targets than a path, a broken escape. */
const protocolFault = (request: IncomingMessage, ambiguity = ambiguityOf(request)): ApiError | null => {
  if (ambiguity !== null) return malformed(ambiguity);
  const [target = ""] = (request.url ?? "").split("?");
  try {
    decodeURIComponent(target);
    return null;
  } catch {
    return malformed("the path has an invalid percent escape");
  }
};

/** What Node's parser says, as a status: headers over 16 KiB, headers later than 10 s, anything else malformed. */
const PARSER_STATUSES: Readonly<Record<string, readonly [string, string, string]>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "headers_too_large",
    "the headers are too long",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "headers_timeout", "the headers did not arrive in time"],
};

/** Answers what the parser refused (threats.md W20) in the one shape, unless an answer is on its way already. */
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

const malformed = (what: string) =>
  new BadRequest({ error: `The request is malformed: ${what}.`, code: "malformed_request" });

/** Every failure of the app as an answer: a missing route, an outage, a defect (logged, never shown). */
const inOneShape = <R>(
  app: App<R>,
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
  atExactPath(app).pipe(
    Effect.catchCause((cause) =>
      Effect.gen(function* () {
        const error = Cause.squash(cause);
        if (isRouteMiss(error)) return routeMiss(yield* HttpServerRequest.HttpServerRequest);
        if (isApiError(error)) return apiErrorResponse(error);
        if (Cause.hasInterruptsOnly(cause)) return HttpServerResponse.empty({ status: 499 });
        yield* Effect.logError("a request failed", cause);
        return apiErrorResponse(
          new Internal({
            error: "Internal error. The cause is in the service's log.",
            code: "internal_error",
          }),
        );
      }),
    ),
    Effect.map(withConnectionHeaders),
  );

/** An empty segment names nothing: it must not reach a route as an empty id (threats.md W28). */
const EMPTY_SEGMENT = /\/\/|.\/$/;

const atExactPath = <R>(app: App<R>): App<R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    EMPTY_SEGMENT.test(request.url.split("?")[0] ?? "") ? Effect.succeed(routeMiss(request)) : app,
  );

/** A sender that was cut short is not listened to any longer; one that came too early is told when to come back. */
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
