/**
 * `http://127.0.0.1:{port}/metrics` (PLATFORM_METRICS_PORT): the metrics of the whole service, for a Prometheus on this
 * machine, without a token. Requests under a foreign host name get nothing, so a web page cannot read it.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import * as Effect from "effect/Effect";
import * as FiberSet from "effect/FiberSet";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import { isOwnHost, OWN_HOST, ownPort } from "../ground/net/own-host.ts";
import { Measures } from "./port.ts";
import { makeRegistry, type Registry } from "./registry.ts";

/** A scrape sends a small request and waits for the whole answer. */
const LIMITS = { headersTimeout: 10_000, requestTimeout: 10_000, maxHeaderSize: 8192 };
const CONNECTIONS_MAX = 16;
const HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** The port cannot be listened on. The start is refused with this sentence. */
export class MetricsPortTaken extends Error {
  readonly _tag = "MetricsPortTaken";
  constructor(port: number, cause: Error) {
    super(`cannot listen on ${OWN_HOST}:${port} (PLATFORM_METRICS_PORT): ${cause.message}`, { cause });
  }
}

/** Why a request is refused. Null if it gets the metrics. */
const refusal = (server: Server, { method, url, headers }: IncomingMessage): number | null => {
  if (!isOwnHost(server, headers.host)) return 403;
  if (url?.split("?")[0] !== "/metrics") return 404;
  return method === "GET" ? null : 405;
};

/** Serves a registry until the scope closes. @returns the port */
export const openMetricsPage = Effect.fnUntraced(function* (
  { text }: Pick<Registry, "text">,
  port: number,
): Effect.fn.Return<number, MetricsPortTaken, Scope.Scope> {
  const run = yield* FiberSet.makeRuntime<never>();
  const answer = (server: Server, request: IncomingMessage, response: ServerResponse): void => {
    const status = refusal(server, request);
    if (status !== null) {
      response.writeHead(status, HEADERS).end();
      return;
    }
    const type = "text/plain; version=0.0.4; charset=utf-8";
    const reply = Effect.map(text, (body) => {
      response.writeHead(200, { ...HEADERS, "content-type": type }).end(body);
    });
    run(
      Effect.catchCause(reply, (cause) =>
        Effect.andThen(
          Effect.logError("a scrape failed", cause),
          Effect.sync(() => response.writeHead(500, HEADERS).end()),
        ),
      ),
    );
  };
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server, MetricsPortTaken>((resume) => {
      const httpServer = createServer(LIMITS);
      httpServer.maxConnections = CONNECTIONS_MAX;
      httpServer.on("request", (request, response) => answer(httpServer, request, response));
      httpServer.once("error", (error) => resume(Effect.fail(new MetricsPortTaken(port, error))));
      httpServer.listen(port, OWN_HOST, () => resume(Effect.succeed(httpServer)));
    }),
    (listener) =>
      Effect.callback<void>((resume) => {
        listener.close(() => resume(Effect.void));
        listener.closeAllConnections();
      }),
  );
  return ownPort(server);
});

/** Keeps the metrics and serves them. `port` 0 takes a free one, which the log names. */
export const metricsLayer = (port: number): Layer.Layer<never, MetricsPortTaken> =>
  Layer.effect(
    Measures,
    Effect.gen(function* () {
      const registry = makeRegistry();
      const own = yield* openMetricsPage(registry, port);
      yield* Effect.logInfo(`metrics are at http://${OWN_HOST}:${own}/metrics`);
      return registry;
    }),
  );
