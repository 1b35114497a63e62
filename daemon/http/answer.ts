/** The daemon's own answers: JSON, with errors in the common shape of api.md 1. */
import type { ServerResponse } from "node:http";
import type { UserContextRefusal } from "../../src/domain/sandbox/user-context.ts";
import type { HandshakeFault } from "../../src/proxy/handshake.ts";
import type { Failure, Upstream } from "../../src/proxy/proxy.ts";
import { answerPage, wantsPage } from "./failure-page.ts";

/** Why a request has no route. */
export interface Refusal {
  readonly status: 400 | 403 | 404 | 405;
  readonly code: "bad_request" | "bad_port" | "port_blocked" | "not_found" | "method_not_allowed";
  readonly error: string;
}

export interface ErrorBody {
  readonly error: string;
  readonly code: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A refusal before it is sent. */
export interface ControlRefusal {
  readonly status: number;
  readonly body: ErrorBody;
}

/** 200 with the result, or a refusal. */
export type ControlAnswer = { readonly done: object } | ControlRefusal;

export const refusal = (status: number, code: string, error: string): ControlRefusal => ({
  status,
  body: { error, code },
});

export const ENDING = refusal(503, "ending", "The sandbox is stopping.");
export const NO_CHECKOUT = refusal(503, "runtime_not_ready", "The repository is not checked out yet.");
export const CLAIMED = refusal(409, "claimed", "This sandbox has its session.");
export const NOT_SUPPORTED = refusal(
  409,
  "not_supported",
  "This agent runtime has no conversation that the platform can follow or steer.",
);
export const NO_API = refusal(
  409,
  "not_supported",
  "This agent runtime has no HTTP API. Use the session's conversation.",
);
export const OPEN_BY_SOCKET = refusal(400, "bad_request", "Open a terminal with a WebSocket.");
export const SERVICE_ONLY = refusal(403, "forbidden", "Only the service may call this.");
export const NOT_READY = refusal(
  503,
  "runtime_not_ready",
  "The agent runtime is not ready yet. Try again in a second.",
);

const toSentence = (path: string, message: string): string => {
  const text = message.replace(/\.$/, "");
  if (text === "unknown field") return `Unknown field \`${path}\`.`;
  const isDemand = text.startsWith("must ");
  if (path === "") return isDemand ? `The body ${text}.` : `Invalid body: ${text}.`;
  return isDemand ? `\`${path}\` ${text}.` : `Invalid \`${path}\`: ${text}.`;
};

/**
 * The error of a JSON body, in the service's wording (api.md 1 "Bad input").
 *
 * @param path of the field; empty for the body itself.
 */
export const invalid = (path: string, message: string, code = "invalid_request"): ControlRefusal => ({
  status: 400,
  body: {
    error: toSentence(path, message),
    code,
    details: { issues: [{ path, message }] },
  },
});

export const answerJson = (response: ServerResponse, status: number, body: unknown): void => {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": bytes.length,
    "cache-control": "no-store",
  });
  response.end(bytes);
};

/** If the body is still arriving, the connection closes with the answer. */
export const answerError = (response: ServerResponse, status: number, body: ErrorBody): void => {
  const { headers, complete } = response.req;
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (hasBody && !complete) response.setHeader("connection", "close");
  answerJson(response, status, body);
};

export const answerRefusal = (response: ServerResponse, { status, code, error }: Refusal): void =>
  answerError(response, status, { error, code });

/** Closes the connection, because the bytes after a malformed request are not trustworthy. */
export const answerMalformed = (response: ServerResponse, instead: string): void => {
  response.setHeader("connection", "close");
  answerError(response, 400, {
    error: `The request is malformed: ${instead}.`,
    code: "malformed_request",
  });
};

export const answerHandshake = (response: ServerResponse, fault: HandshakeFault): void => {
  for (const [name, value] of Object.entries(fault.headers)) response.setHeader(name, value);
  answerError(response, fault.status, { error: fault.error, code: fault.code });
};

export const answerUnauthenticated = (response: ServerResponse, reason: UserContextRefusal): void =>
  answerError(response, 401, {
    error: "This request needs a valid, signed user context.",
    code: "invalid_user_context",
    details: { reason },
  });

export const answerNotReady = (response: ServerResponse): void => {
  response.setHeader("retry-after", "1");
  answerError(response, NOT_READY.status, NOT_READY.body);
};

/** Answers for requests that could not be passed on completely. */
const FAILURES: Readonly<Record<Failure, (host: string) => { readonly status: number } & ErrorBody>> = {
  unreachable: (host) => ({
    status: 502,
    error: `${host} in the sandbox did not respond. No program listens there, or it closed the connection.`,
    code: "upstream_unreachable",
  }),
  silent: (host) => ({
    status: 504,
    error: `${host} in the sandbox did not respond in time.`,
    code: "upstream_timeout",
  }),
  body_stalled: () => ({ status: 408, error: "The body did not arrive in time.", code: "body_timeout" }),
};

export const answerFailure = (response: ServerResponse, { host }: Upstream, why: Failure): void => {
  const { status, ...body } = FAILURES[why](host);
  if (wantsPage(response.req)) answerPage(response, { status, error: body.error });
  else answerError(response, status, body);
};
