/**
 * The adapter of src/connectors/port.ts for HTTP APIs: the request of an operation, and an answer as a tool's result. A request is one
 * exchange, and no redirect is followed.
 */
import { type NetClient, readBody, readStart } from "../ground/net/client.ts";
import { NetFault } from "../ground/net/fault.ts";
import { isShallow } from "../domain/connector/catalogue.ts";
import { DESCRIPTION_MAX_BYTES } from "../domain/connector/openapi/description.ts";
import { operationRequest, type HttpRequest } from "../domain/connector/http-operation.ts";
import * as Result from "effect/Result";
import type { HttpCall, ServerFault, ServerTarget, ToolResult } from "./port.ts";
import { exchangeFault } from "./wire.ts";
import { parseJson } from "../ground/record.ts";

const DOCUMENT_MS = 30_000;
/**
 * How much of an error's body is read. It is cut after its secrets are masked (services/connectors/executor-outcome.ts), so that no part of
 * one is left at the cut.
 */
const ERROR_MAX_BYTES = 64 * 1024;
const ACCEPT = "application/json, text/*;q=0.9, */*;q=0.5";
const TEXT =
  /^text\/|[/+](?:json|xml|yaml|x-yaml|javascript|graphql|csv|toml|x-ndjson|jsonl|x-www-form-urlencoded)\b/i;
/** A gateway answers so for a server that may have done what was asked. */
const LOST: ReadonlySet<number> = new Set([502, 504]);
/** After these redirects, the server may have done what a request that is no GET asked. */
const DONE: ReadonlySet<number> = new Set([301, 302, 303]);

interface Bounds {
  readonly maxBytes: number;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly bytes: Buffer;
}

const fault = (
  why: string,
  { isUnknown = false, status = null }: Partial<Pick<ServerFault, "isUnknown" | "status">> = {},
): ServerFault => ({ _tag: "ServerFault", why, isUnknown, status });

/** Sends a request once. @throws ServerFault */
const exchange = async (
  client: NetClient,
  { method, url, headers, body }: HttpRequest,
  { maxBytes, deadlineMs, signal }: Bounds,
): Promise<Answer> => {
  let isSent = false;
  let status: number | null = null;
  try {
    const target = new URL(url);
    isSent = true;
    const answer = await client.fetch(target, {
      method,
      headers: { accept: ACCEPT, "user-agent": "platform", ...headers, "accept-encoding": "identity" },
      body,
      signal,
      withinMs: deadlineMs,
    });
    ({ status } = answer);
    const bytes =
      status >= 400
        ? await readStart(answer.body, ERROR_MAX_BYTES)
        : await readBody(answer.body, { host: target.host, maxBytes, withinMs: deadlineMs });
    return { status, type: answer.headers.get("content-type") ?? "", bytes };
  } catch (error) {
    const isUnknown = isSent && !(error instanceof NetFault && error.isUnsent);
    throw fault(exchangeFault(error), { isUnknown, status });
  }
};

const redirectFault = (status: number, method: string): ServerFault =>
  fault(`redirects (status ${status}), which is not followed`, {
    status,
    isUnknown: method !== "GET" && DONE.has(status),
  });

/** Bytes as text. Null if they are something else. */
const answerText = ({ type, bytes }: Answer): string | null => {
  const charset = /;\s*charset="?([\w:.-]+)/i.exec(type)?.[1] ?? "utf-8";
  const isNamed = type !== "";
  if (isNamed && !TEXT.test(type)) return null;
  try {
    return new TextDecoder(charset, { fatal: !isNamed }).decode(bytes);
  } catch {
    return isNamed ? bytes.toString("utf8") : null;
  }
};

const textContent = (text: string) => [{ type: "text", text }];

const toResult = (answer: Answer): ToolResult => {
  const { status, type, bytes } = answer;
  const text = answerText(answer);
  if (status >= 400) {
    const body = text === null || text.trim() === "" ? "" : ` Its answer begins:\n${text}`;
    return {
      content: textContent(`The server answered with status ${status}.${body}`),
      isError: true,
      status,
    };
  }
  if (bytes.length === 0)
    return {
      content: textContent(`The server answered with status ${status} and nothing else.`),
      isError: false,
      status,
    };
  if (text === null) {
    const what = /^[\w.+-]+\/[\w.+-]+/.exec(type)?.[0] ?? "an unknown type";
    const size = `${bytes.length} bytes of ${what}, which are not passed on`;
    return { content: textContent(`The server answered with ${size}.`), isError: false, status };
  }
  const value = /[/+]json\b/i.test(type) ? parseJson(text) : null;
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value) && isShallow(value);
  return {
    content: textContent(text),
    ...(isObject && { structuredContent: value }),
    isError: false,
    status,
  };
};

/** Its end is cut where it is told, after masking. */
const quote = (answer: Answer): string => {
  const text = answerText(answer)?.trim() ?? "";
  return text === "" ? "" : `. It says: ${text}`;
};

/** Calls an operation. @throws ServerFault */
export const callApi = async (
  client: NetClient,
  target: ServerTarget,
  { call: { request, arguments: given }, bounds }: { readonly call: HttpCall; readonly bounds: Bounds },
): Promise<ToolResult> => {
  const requestResult = operationRequest(target, request, given);
  if (Result.isFailure(requestResult))
    throw fault(`was not asked. ${requestResult.failure.replace(/\.$/, "")}`);
  const answer = await exchange(client, requestResult.success, bounds);
  const { status } = answer;
  if (status >= 300 && status < 400 && status !== 304) throw redirectFault(status, request.method);
  if (status === 401)
    throw fault(`answered with status 401. Its credential may be wrong${quote(answer)}`, { status });
  if (LOST.has(status))
    throw fault(`answered with status ${status}${quote(answer)}`, { status, isUnknown: true });
  return toResult(answer);
};

/** The text at an address. @throws ServerFault */
export const fetchDocument = async (
  client: NetClient,
  { url, headers }: ServerTarget,
  signal: AbortSignal,
): Promise<string> => {
  const answer = await exchange(
    client,
    { method: "GET", url, headers, body: null },
    { maxBytes: DESCRIPTION_MAX_BYTES, deadlineMs: DOCUMENT_MS, signal },
  );
  const { status } = answer;
  if (status >= 300 && status < 400) throw redirectFault(status, "GET");
  if (status !== 200)
    throw fault(
      `answered with status ${status} for its description${status === 401 || status === 403 ? ". Its credential may be wrong" : ""}`,
      { status },
    );
  return answer.bytes.toString("utf8");
};
