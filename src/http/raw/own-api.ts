/**
 * Calls of this service's own API without a connection, with the token of the request that is under way.
 *
 *  O1 The router answers, so the token may do what it may do from outside, and never more. Nothing is decided here.
 *  O2 Only the token of the request is passed on, and no other header.
 */
import * as Effect from "effect/Effect";
import { HttpServerRequest, HttpServerResponse, type HttpRouter } from "effect/http";
import { Addresses } from "../limits.ts";

/** A request to the own API. Segments of the path and values of the query are texts as they are. */
export interface OwnRequest {
  readonly method: "GET" | "POST";
  /** Below `/v1/projects/{pid}`. */
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

export interface OwnAnswer {
  readonly status: number;
  readonly text: string;
}

export type Router = HttpRouter.HttpRouter;

const requestTarget = (projectId: string, { path, query = {} }: OwnRequest): string => {
  const parameters = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as const],
  );
  const search = parameters.length === 0 ? "" : `?${new URLSearchParams(Object.fromEntries(parameters))}`;
  return `/v1/projects/${[projectId, ...path].map(encodeURIComponent).join("/")}${search}`;
};

/** Asks the own API. An error that the router does not answer is a defect, as for a request from outside. */
export const askOwn = Effect.fnUntraced(function* (router: Router, projectId: string, call: OwnRequest) {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const { internalUrl } = yield* Addresses;
  const { method, body } = call;
  const web = new Request(new URL(requestTarget(projectId, call), internalUrl), {
    method,
    headers: {
      authorization: request.headers["authorization"] ?? "",
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const inner = HttpServerRequest.fromWeb(web).modify({ remoteAddress: request.remoteAddress });
  const answer = router
    .asHttpEffect()
    .pipe(Effect.provideService(HttpServerRequest.HttpServerRequest, inner), Effect.orDie);
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const response = yield* answer;
      const context = yield* Effect.context<never>();
      const text = yield* Effect.promise(() => HttpServerResponse.toWeb(response, { context }).text());
      return { status: response.status, text } satisfies OwnAnswer;
    }),
  );
});
