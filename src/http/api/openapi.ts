/**
 * Completes the OpenAPI document beyond the endpoints' definitions: authentication, one schema for every error, and the
 * raw routes that stream or check raw bytes.
 */
import { EVENT_SKIPS } from "../../domain/trigger/event-skip.ts";
import { illustrate } from "./examples/illustrate.ts";
import type { WholeExamples } from "./examples/example.ts";
import { archive, attach, attachment, conversationEvents, upload } from "./openapi/conversation.ts";
import { beginDeviceLogin, claimDeviceLogin } from "./openapi/device-logins.ts";
import {
  textAnswer,
  ERROR_REF,
  headerParameter,
  json,
  reading,
  refusal,
  type Node,
  type RawOperation,
} from "./openapi/parts.ts";

type Operation = Node & { readonly responses?: Readonly<Record<string, Node>> };
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

interface Document extends Node {
  readonly paths: Paths;
  readonly components: Node & { readonly schemas: Readonly<Record<string, unknown>> };
}

const errorSchema = {
  type: "object",
  description: "Every error has this form.",
  properties: {
    error: { type: "string", description: "A message for people. It says what is wrong and what to do." },
    code: { type: "string", description: "A stable code for programs." },
    details: { type: "object" },
  },
  required: ["error", "code"],
  additionalProperties: false,
};

const securitySchemes = {
  token: {
    type: "http",
    scheme: "bearer",
    description: "`platform_pat_…`, or `platform_sbx_…` for the clone credential.",
  },
  git: {
    type: "http",
    scheme: "basic",
    description: "The password is a clone credential or a user's token.",
  },
};

const pathParameter = (name: string): Node => ({
  name,
  in: "path",
  required: true,
  schema: { type: "string", ...(name === "pid" || name === "sid" ? { format: "uuid" } : {}) },
});
const operation = (path: string, raw: RawOperation): Operation => ({
  tags: [raw.tag],
  operationId: raw.id,
  summary: raw.summary,
  parameters: [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => pathParameter(name)),
    ...(raw.parameters ?? []),
  ],
  ...(raw.body === undefined
    ? {}
    : {
        requestBody: {
          required: true,
          content: { [raw.body]: { schema: { type: "string", format: "binary" } } },
        },
      }),
  responses: raw.responses,
  ...(raw.security === undefined ? {} : { security: raw.security }),
});

const stream = (id: string, summary: string): RawOperation => ({
  tag: "live",
  id,
  summary,
  parameters: [
    headerParameter(
      "Last-Event-ID",
      "Resumes after this event. If the service no longer has it, the stream starts with `event: reset`.",
    ),
  ],
  responses: {
    200: textAnswer("text/event-stream", "Server-sent events. Each event has an id."),
    ...reading,
    429: refusal("The token has too many open streams."),
  },
});

const logs: RawOperation = {
  tag: "live",
  id: "live.logs",
  summary: "Read or stream the log of a session's sandboxes: boot steps, the daemon, the agent runtime.",
  parameters: [
    {
      name: "follow",
      in: "query",
      required: false,
      description: "`1` (the default) streams the log. `0` returns the log so far as text.",
      schema: { type: "string", enum: ["0", "1"] },
    },
    headerParameter(
      "Last-Event-ID",
      "Resumes after this line. If the service no longer has it, the stream sends `event: reset` before the next line.",
    ),
  ],
  responses: {
    200: {
      description:
        "The log of all boots of the session, oldest first. The service keeps the newest 1 MiB until the session is " +
        "deleted. As text, each line is `<iso time> <source> <line>`. As server-sent events, each line is an `event: " +
        "line` with the id `<sandbox id>:<number>.<number>` and the JSON data `{sandbox_id, at, source, line}`. " +
        "`source` is `daemon`, `runtime` (the agent runtime) or `sandbox` (all other output). `at` is null if the time " +
        "is unknown (`-` in text). Secrets are masked, control characters are replaced by visible signs, and long " +
        "lines are cut. The stream stays open for later lines and boots.",
      content: {
        "text/event-stream": { schema: { type: "string" } },
        "text/plain": { schema: { type: "string" } },
      },
    },
    400: refusal("`follow` is neither 0 nor 1."),
    ...reading,
    429: refusal("The token has too many open streams."),
  },
};

const relayOperation = (id: string, summary: string): RawOperation => ({
  tag: "relay",
  id,
  summary,
  responses: {
    default: {
      description: "The response of the called program. All methods, streams and WebSockets are supported.",
    },
    ...reading,
    409: refusal("The session is not running."),
    502: refusal("The called program did not respond."),
  },
});

const gitService = (id: string, service: string): RawOperation => ({
  tag: "git",
  id,
  summary: `Serve git's ${service}, for git clients.`,
  security: [{ git: [] }],
  body: `application/x-git-${service}-request`,
  responses: {
    200: textAnswer(`application/x-git-${service}-result`, "Data of the git protocol."),
    ...reading,
  },
});

const webhook: RawOperation = {
  tag: "webhooks",
  id: "webhooks.receive",
  summary: "Fire a webhook trigger.",
  security: [],
  body: "*/*",
  parameters: [
    headerParameter("X-Platform-Signature", "`sha256=` (optional) and the hex HMAC-SHA256 of the raw body."),
    headerParameter(
      "X-Hub-Signature-256",
      "The same, in the header that code hosts send. Used if `X-Platform-Signature` is absent.",
    ),
    headerParameter(
      "X-Platform-Delivery",
      "The id of the delivery. A second delivery with the same id starts a session only if the first one's session failed before its first turn.",
    ),
    headerParameter(
      "X-GitHub-Event",
      "The event, for the trigger's filter. A `ping` gets a response and does not start a session.",
    ),
  ],
  responses: {
    200: json(
      {
        type: "object",
        properties: {
          status: { type: "string", enum: ["pong", "skipped"] },
          reason: { type: "string", enum: ["filtered", ...EVENT_SKIPS, "spend_limit"] },
          duplicate: { type: "boolean" },
          duplicate_of: { type: "string", format: "uuid" },
          replay: { type: "string" },
        },
        required: ["status"],
      },
      "The signature is valid. No session started: the delivery is a ping, does not match the trigger's filter, tells of a deleted ref or of an act of the service itself, or a limit of spend is reached.",
    ),
    202: json(
      {
        type: "object",
        properties: {
          status: { type: "string", enum: ["fired", "queued"] },
          session_id: { type: "string", format: "uuid" },
          reason: { type: "string", enum: ["account_session_cap"] },
          duplicate: { type: "boolean" },
          duplicate_of: { type: "string", format: "uuid" },
          replay: { type: "string" },
        },
        required: ["status"],
      },
      "The signature is valid. A session started, or the fire is queued.",
    ),
    400: refusal("Malformed project id or slug."),
    401: refusal("Signature missing or mismatched."),
    404: refusal("The trigger does not exist or does not accept deliveries."),
    409: refusal("The trigger's secret has no value."),
    408: refusal("The body did not arrive within 30 s."),
    413: refusal("The body is larger than 25 MiB."),
    422: refusal(
      "The session would have no language model (`no_model`), or not the one of its agent (`unknown_model`).",
    ),
    500: refusal("The session could not be started."),
    503: refusal("The queue is full, or the service is busy. Retry after `Retry-After` seconds."),
  },
};

const health = (id: string, summary: string, more: Readonly<Record<string, Node>> = {}): RawOperation => ({
  tag: "system",
  id,
  summary,
  security: [],
  responses: { 200: json({ type: "object" }, "OK."), ...more },
});

const SESSION = "/v1/projects/{pid}/sessions/{sid}";

const executor: RawOperation = {
  tag: "connectors",
  id: "executor.mcp",
  summary:
    "The tools of the platform and of the project's connectors, by the Model Context Protocol, for the agent of a session.",
  body: "application/json",
  responses: {
    200: {
      description: "Messages of the Model Context Protocol (streamable HTTP), without a session.",
      content: {
        "application/json": { schema: { type: "object" } },
        "text/event-stream": { schema: { type: "string" } },
      },
    },
    202: { description: "The notification was accepted." },
    400: refusal("The body is not a message, or has a field `__proto__`."),
    ...reading,
    413: refusal("The body is larger than 512 KiB."),
    415: refusal("The body is not sent as application/json."),
  },
};

const executorStream: RawOperation = {
  tag: "connectors",
  id: "executor.listen",
  summary: "Stream that an agent's tools have changed, for clients of the revision 2025-11-25.",
  responses: {
    200: textAnswer("text/event-stream", "Messages `notifications/tools/list_changed`, without an id."),
    ...reading,
    429: refusal("The session has four of these streams."),
  },
};

/** Path → method → operation of each raw route. `x-any-method`: the caller chooses the method. */
const RAW: Readonly<Record<string, Readonly<Record<string, RawOperation>>>> = {
  "/v1/device-logins": { post: beginDeviceLogin },
  "/v1/device-logins/token": { post: claimDeviceLogin },
  "/v1/webhooks/projects/{pid}/{slug}": { post: webhook },
  "/v1/projects/{pid}/executor/mcp": { get: executorStream, post: executor },
  "/v1/events": { get: stream("live.all", "Stream the events of all projects that the caller sees.") },
  "/v1/projects/{pid}/events": { get: stream("live.project", "Stream a project's events.") },
  [`${SESSION}/events`]: { get: stream("live.session", "Stream a session's events.") },
  [`${SESSION}/logs`]: { get: logs },
  [`${SESSION}/conversation/events`]: { get: conversationEvents },
  [`${SESSION}/conversation.json`]: { get: archive("json") },
  [`${SESSION}/conversation.md`]: { get: archive("markdown") },
  "/v1/projects/{pid}/attachments": { post: upload },
  [`${SESSION}/attachments`]: { post: attach },
  [`${SESSION}/attachments/{id}`]: { get: attachment },
  [`${SESSION}/refresh`]: {
    post: relayOperation("relay.refresh", "Fetch the session branch and restart the agent runtime in place."),
  },
  [`${SESSION}/abort`]: { post: relayOperation("relay.abort", "End the agent's turn.") },
  [`${SESSION}/runtime/{path}`]: {
    "x-any-method": relayOperation("relay.runtime", "Call the agent runtime's own HTTP API."),
  },
  [`${SESSION}/ports/{port}/{path}`]: {
    "x-any-method": relayOperation("relay.port", "Call a port inside the sandbox."),
  },
  "/v1/git/{repository}/info/refs": {
    get: {
      tag: "git",
      id: "git.advertise",
      summary: "List a repository's refs, for git clients.",
      security: [{ git: [] }],
      parameters: [{ name: "service", in: "query", required: true, schema: { type: "string" } }],
      responses: {
        200: textAnswer("application/x-git-upload-pack-advertisement", "Data of the git protocol."),
        ...reading,
      },
    },
  },
  "/v1/git/{repository}/git-upload-pack": { post: gitService("git.fetch", "upload-pack") },
  "/v1/git/{repository}/git-receive-pack": { post: gitService("git.push", "receive-pack") },
  "/healthz": { get: health("system.alive", "Check that the process is alive.") },
  "/readyz": {
    get: health("system.ready", "Check that the service can serve.", {
      503: json({ type: "object" }, "Not ready."),
    }),
  },
  "/metrics": {
    get: {
      tag: "system",
      id: "system.metrics",
      summary: "Show the service's metrics in Prometheus' text format.",
      responses: {
        200: textAnswer("text/plain", "Prometheus' text format."),
        401: refusal("Missing, invalid or expired token."),
        403: refusal("The token does not have permission."),
      },
    },
  },
};

const rawPaths = (): Paths =>
  Object.fromEntries(
    Object.entries(RAW).map(([path, methods]) => [
      path,
      Object.fromEntries(Object.entries(methods).map(([method, raw]) => [method, operation(path, raw)])),
    ]),
  );

/** Operations from the definitions use the document's own security, the bearer token. */
const withoutOwnSecurity = (paths: Paths): Paths =>
  Object.fromEntries(
    Object.entries(paths).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, { security: _, ...rest }]) => [method, rest as Operation]),
      ),
    ]),
  );

/** All error classes have one shape, so they share one schema instead of one for each status. */
const ERROR_NAMES = /"#\/components\/schemas\/(?:[A-Z][A-Za-z]*)Encoded"/g;

/** Completes the generated document. */
export const completeDocument =
  (examples: WholeExamples) =>
  (source: Readonly<Record<string, unknown>>): Record<string, unknown> => {
    const document = JSON.parse(
      JSON.stringify(source).replaceAll(ERROR_NAMES, JSON.stringify(ERROR_REF)),
    ) as Document;
    const schemas = Object.entries(document.components.schemas).filter(([name]) => !name.endsWith("Encoded"));
    const raw = rawPaths();
    // A raw route may belong to a group of the definitions.
    const tags = new Set([
      ...(document["tags"] as readonly { readonly name: string }[]).map(({ name }) => name),
      ...Object.values(RAW).flatMap((methods) => Object.values(methods).map(({ tag }) => tag)),
    ]);
    return {
      ...document,
      security: [{ token: [] }],
      tags: [...tags].map((name) => ({ name })),
      paths: illustrate({ ...withoutOwnSecurity(document.paths), ...raw }, examples),
      components: {
        ...document.components,
        schemas: { ...Object.fromEntries(schemas), Error: errorSchema },
        securitySchemes,
      },
    };
  };
