/** All routes, by method and pattern: for the answer to a wrong method, and for the golden list of routes. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http";
import { HttpApi } from "effect/http-api";
import { parseUuid } from "../domain/ids.ts";
import { Access, type Power } from "./api/access.ts";
import { Api } from "./api/api.ts";
import { badRequest, NotFound } from "./api/errors.ts";
import { pagesWith } from "./pages/look.ts";
import { apiErrorResponse, wrongMethod } from "./respond.ts";

/**
 * A route's required authentication, beyond the powers of api/access.ts: `git`: see git.ts; `person`: any token that a
 * user created; `node`: a credential of the nodes (nodes/endpoint.ts), never a token.
 */
export type RoutePower = Power | "git" | "person" | "node";

export interface Route {
  /** `*`: any. */
  readonly method: string;
  /** `:name` is one segment. A final `*` matches the rest. */
  readonly pattern: string;
  /** Null: no token is needed. */
  readonly power: RoutePower | null;
}

const apiRoutes = (): readonly Route[] => {
  const routes: Route[] = [];
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      routes.push({
        method: endpoint.method,
        pattern: endpoint.path,
        power: Option.getOrNull(Context.getOption(endpoint.annotations, Access)),
      });
    },
  });
  return routes;
};

/** Raw routes beside the API's definitions. Each checks its own authentication. */
export const RAW_ROUTES: readonly Route[] = [
  { method: "GET", pattern: "/healthz", power: null },
  { method: "GET", pattern: "/readyz", power: null },
  { method: "GET", pattern: "/metrics", power: "operate" },
  { method: "GET", pattern: "/openapi.json", power: null },
  { method: "GET", pattern: "/docs", power: null },
  { method: "GET", pattern: "/docs/guide", power: null },
  { method: "GET", pattern: "/docs/guide/:page", power: null },
  { method: "GET", pattern: "/docs/guide/:kind/:page", power: null },
  { method: "GET", pattern: "/docs/guide/:kind/:group/:page", power: null },
  { method: "POST", pattern: "/v1/device-logins", power: null },
  { method: "POST", pattern: "/v1/device-logins/token", power: null },
  { method: "POST", pattern: "/v1/webhooks/projects/:pid/:slug", power: null },
  { method: "GET", pattern: "/v1/projects/:pid/executor/mcp", power: "execute" },
  { method: "POST", pattern: "/v1/projects/:pid/executor/mcp", power: "execute" },
  { method: "GET", pattern: "/v1/projects/:pid/events", power: "read" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/events", power: "read" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/logs", power: "read" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/conversation/events", power: "read" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/conversation.json", power: "read" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/conversation.md", power: "read" },
  { method: "POST", pattern: "/v1/projects/:pid/sessions/:sid/attachments", power: "converse" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/attachments/:id", power: "read" },
  { method: "POST", pattern: "/v1/projects/:pid/sessions/:sid/abort", power: "converse" },
  { method: "POST", pattern: "/v1/projects/:pid/sessions/:sid/refresh", power: "converse" },
  { method: "*", pattern: "/v1/projects/:pid/sessions/:sid/runtime/*", power: "converse" },
  { method: "*", pattern: "/v1/projects/:pid/sessions/:sid/ports/:port/*", power: "work" },
  { method: "GET", pattern: "/v1/git/:repository/info/refs", power: "git" },
  { method: "POST", pattern: "/v1/git/:repository/git-upload-pack", power: "git" },
  { method: "POST", pattern: "/v1/git/:repository/git-receive-pack", power: "git" },
  { method: "*", pattern: "/v1/nodes/*", power: "node" },
  { method: "GET", pattern: "/", power: null },
  { method: "GET", pattern: "/dashboard/open", power: null },
  { method: "POST", pattern: "/dashboard/open", power: null },
  { method: "POST", pattern: "/dashboard/session", power: null },
  { method: "GET", pattern: "/dashboard/session", power: null },
  { method: "DELETE", pattern: "/dashboard/session", power: null },
  { method: "POST", pattern: "/dashboard/links", power: "person" },
  { method: "GET", pattern: "/dashboard/providers", power: null },
  { method: "GET", pattern: "/dashboard/login/:provider", power: null },
  { method: "POST", pattern: "/dashboard/login/:provider", power: null },
  { method: "GET", pattern: "/dashboard/callback/:provider", power: null },
  { method: "GET", pattern: "/dashboard/callback/connector", power: null },
  { method: "GET", pattern: "/dashboard/connectors/:ticket", power: null },
  { method: "POST", pattern: "/dashboard/invitations/look", power: null },
  { method: "POST", pattern: "/dashboard/invitations/accept", power: null },
];

/** As long as the longest secret name, so that a route's handler itself refuses a segment that is too long. */
const SEGMENT_MAX = 4096;

/** A route matches exactly one spelling of its path (threats.md W28). */
export const exactPaths = Effect.provideService(HttpRouter.RouterConfig, {
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  caseSensitive: true,
  maxParamLength: SEGMENT_MAX,
});

export const ROUTES: readonly Route[] = [...apiRoutes(), ...RAW_ROUTES];

const matchers = ROUTES.map(({ method, pattern }) => ({
  method,
  path: new RegExp(`^${pattern.replaceAll(/:[a-z]+/gi, "[^/]+").replace(/\*$/, ".*")}$`),
}));

const NO_PAGE = pagesWith()({
  title: "Page not found",
  status: 404,
  body: '<main><h1>Page not found</h1><p>No page has this address. <a href="/">Open the dashboard</a> or <a href="/docs/guide">read the guide</a>.</p></main>',
});

/** Whether a person's browser asks for a page. Programs accept JSON or everything. */
const asksForPage = ({ method, headers }: HttpServerRequest.HttpServerRequest): boolean =>
  method === "GET" && (headers["accept"] ?? "").startsWith("text/html");

/** 405 with `Allow` if the path has other methods, otherwise 404 (threats.md W27, W28), which browsers get as a page. */
export const routeMiss = (
  request: HttpServerRequest.HttpServerRequest,
): HttpServerResponse.HttpServerResponse => {
  const [target = ""] = request.url.split("?");
  // One path can match two patterns.
  const methods = [...new Set(matchers.filter(({ path }) => path.test(target)).map(({ method }) => method))];
  const [, , , pid = "", , sid = ""] = target.split("/");
  const isRelays = methods.includes("*");
  // The relay accepts every method. A path that it did not accept does not name a session, or is not one of the
  // runtime's paths.
  if (isRelays && (parseUuid(pid) === null || parseUuid(sid) === null)) {
    return apiErrorResponse(badRequest("sid", "must be a lower-case UUID, like the project id"));
  }
  if (methods.length > 0 && !isRelays) return wrongMethod(...methods);
  if (asksForPage(request)) return NO_PAGE;
  return apiErrorResponse(new NotFound({ error: "Address not found.", code: "not_found" }));
};
