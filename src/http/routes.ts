/** All routes, by method and pattern: for the answer to a wrong method, and for the golden list of routes. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http";
import { HttpApi, type HttpApiGroup } from "effect/http-api";
import { parseUuid } from "../domain/ids.ts";
import type { Privilege } from "../domain/person/privileges.ts";
import { RequiredPrivilege } from "./api/access.ts";
import { badRequest, NotFound } from "./api/errors.ts";
import { pagesWith } from "./pages/look.ts";
import { apiErrorResponse, wrongMethod } from "./answers/respond.ts";
import { badAddress } from "./webhooks/webhook-answers.ts";

export interface Route {
  /** `*`: any. */
  readonly method: string;
  /** `:name` is one segment. A final `*` matches the rest. */
  readonly pattern: string;
  readonly privilege: Privilege;
}

/** The routes of the API's definitions. */
export const definedRoutes = <Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<string, Groups>,
): readonly Route[] => {
  const routes: Route[] = [];
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      routes.push({
        method: endpoint.method,
        pattern: endpoint.path,
        // It throws at once for an endpoint without one.
        privilege: Context.getUnsafe(endpoint.annotations, RequiredPrivilege),
      });
    },
  });
  return routes;
};

/** Raw routes beside the API's definitions. Each checks its own privilege. */
export const RAW_ROUTES: readonly Route[] = [
  { method: "GET", pattern: "/healthz", privilege: "see_health" },
  { method: "GET", pattern: "/readyz", privilege: "see_health" },
  { method: "GET", pattern: "/metrics", privilege: "operate_service" },
  { method: "GET", pattern: "/openapi.json", privilege: "read_documents" },
  { method: "GET", pattern: "/docs", privilege: "read_documents" },
  { method: "GET", pattern: "/docs/guide", privilege: "read_documents" },
  { method: "GET", pattern: "/docs/guide/:page", privilege: "read_documents" },
  { method: "GET", pattern: "/docs/guide/:kind/:page", privilege: "read_documents" },
  { method: "GET", pattern: "/docs/guide/:kind/:group/:page", privilege: "read_documents" },
  { method: "POST", pattern: "/v1/device-logins", privilege: "sign_in" },
  { method: "POST", pattern: "/v1/device-logins/token", privilege: "sign_in" },
  { method: "POST", pattern: "/v1/webhooks/projects/:pid/:slug", privilege: "sign_for_trigger" },
  { method: "GET", pattern: "/v1/projects/:pid/executor/mcp", privilege: "call_tool" },
  { method: "POST", pattern: "/v1/projects/:pid/executor/mcp", privilege: "call_tool" },
  { method: "GET", pattern: "/v1/events", privilege: "read_project" },
  { method: "GET", pattern: "/v1/projects/:pid/events", privilege: "read_project" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/events", privilege: "read_project" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/logs", privilege: "read_project" },
  {
    method: "GET",
    pattern: "/v1/projects/:pid/sessions/:sid/conversation/events",
    privilege: "read_project",
  },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/conversation.json", privilege: "read_project" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/conversation.md", privilege: "read_project" },
  { method: "POST", pattern: "/v1/projects/:pid/attachments", privilege: "manage_messages" },
  { method: "POST", pattern: "/v1/projects/:pid/sessions/:sid/attachments", privilege: "manage_messages" },
  { method: "GET", pattern: "/v1/projects/:pid/sessions/:sid/attachments/:id", privilege: "read_project" },
  { method: "POST", pattern: "/v1/projects/:pid/sessions/:sid/abort", privilege: "control_runtime" },
  { method: "POST", pattern: "/v1/projects/:pid/sessions/:sid/refresh", privilege: "control_runtime" },
  { method: "*", pattern: "/v1/projects/:pid/sessions/:sid/runtime/*", privilege: "use_runtime" },
  { method: "*", pattern: "/v1/projects/:pid/sessions/:sid/ports/:port/*", privilege: "enter_port" },
  { method: "GET", pattern: "/v1/git/:repository/info/refs", privilege: "read_repository" },
  { method: "POST", pattern: "/v1/git/:repository/git-upload-pack", privilege: "read_repository" },
  { method: "POST", pattern: "/v1/git/:repository/git-receive-pack", privilege: "write_ref" },
  { method: "*", pattern: "/v1/nodes/*", privilege: "join_nodes" },
  { method: "GET", pattern: "/", privilege: "read_documents" },
  { method: "GET", pattern: "/dashboard/open", privilege: "sign_in" },
  { method: "POST", pattern: "/dashboard/open", privilege: "sign_in" },
  { method: "POST", pattern: "/dashboard/session", privilege: "sign_in" },
  { method: "GET", pattern: "/dashboard/session", privilege: "sign_in" },
  { method: "DELETE", pattern: "/dashboard/session", privilege: "sign_in" },
  { method: "POST", pattern: "/dashboard/links", privilege: "link_browser" },
  { method: "GET", pattern: "/dashboard/providers", privilege: "sign_in" },
  { method: "GET", pattern: "/dashboard/login/:provider", privilege: "sign_in" },
  { method: "POST", pattern: "/dashboard/login/:provider", privilege: "sign_in" },
  { method: "GET", pattern: "/dashboard/callback/:provider", privilege: "sign_in" },
  { method: "GET", pattern: "/dashboard/callback/connector", privilege: "sign_in" },
  { method: "GET", pattern: "/dashboard/connectors/:ticket", privilege: "sign_in" },
  { method: "POST", pattern: "/dashboard/invitations/look", privilege: "sign_in" },
  { method: "POST", pattern: "/dashboard/invitations/accept", privilege: "sign_in" },
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

/** What the listener asks about addresses; `src/assembly/api.ts` has the table of all routes. */
export interface RouteTable {
  /** The name of a request's route (route-name.ts). `target` is the request's, with or without a query. */
  readonly name: (method: string, target: string) => string;
  /** The answer to an address that no route has. */
  readonly miss: (request: HttpServerRequest.HttpServerRequest) => HttpServerResponse.HttpServerResponse;
}

const WITHOUT_SLUG = /^\/v1\/webhooks\/projects\/[^/]*\/$/;

const NO_PAGE = pagesWith()({
  title: "Page not found",
  status: 404,
  body: '<main><h1>Page not found</h1><p>No page has this address. <a href="/">Open the dashboard</a> or <a href="/docs/guide">read the guide</a>.</p></main>',
});

/** Whether a person's browser asks for a page. Programs accept JSON or everything. */
const asksForPage = ({ method, headers }: HttpServerRequest.HttpServerRequest): boolean =>
  method === "GET" && (headers["accept"] ?? "").startsWith("text/html");

/** 405 with `Allow` if the path has other methods, otherwise 404 (threats.md W27, W28), which browsers get as a page. */
export const routeMisses = (routes: readonly Route[]): RouteTable["miss"] => {
  const matchers = routes.map(({ method, pattern }) => ({
    method,
    path: new RegExp(`^${pattern.replaceAll(/:[a-z]+/gi, "[^/]+").replace(/\*$/, ".*")}$`),
  }));
  return (request) => {
    const [target = ""] = request.url.split("?");
    // One path can match two patterns.
    const methods = [
      ...new Set(matchers.filter(({ path }) => path.test(target)).map(({ method }) => method)),
    ];
    const [, , , pid = "", , sid = ""] = target.split("/");
    const isRelays = methods.includes("*");
    // The relay accepts every method. A path that it did not accept does not name a session, or is not one of the
    // runtime's paths.
    if (isRelays && (parseUuid(pid) === null || parseUuid(sid) === null)) {
      return apiErrorResponse(badRequest("sid", "must be a lower-case UUID, like the project id"));
    }
    if (methods.length > 0 && !isRelays) return wrongMethod(...methods);
    // An empty slug is a malformed one.
    if (request.method === "POST" && WITHOUT_SLUG.test(target)) return apiErrorResponse(badAddress());
    if (asksForPage(request)) return NO_PAGE;
    return apiErrorResponse(new NotFound({ error: "Address not found.", code: "not_found" }));
  };
};
