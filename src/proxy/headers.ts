/** Which headers pass a proxy, over Node's flat raw lists `[name, value, name, value, …]`. */
import type { IncomingMessage } from "node:http";
import { USER_CONTEXT_HEADER } from "../domain/sandbox/user-context.ts";

/** Connection-level headers (RFC 9110, 7.6.1). `Trailer` stays: trailers are passed on. */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "transfer-encoding",
  "upgrade",
];

/** Headers dropped from an answer: only those of its connection. */
const NOT_OF_ANSWERS: ReadonlySet<string> = new Set(HOP_BY_HOP);

/**
 * Headers dropped from a request: in addition the user context, the caller's credential, and headers that only the
 * service may set (X11, X13).
 */
const NOT_OF_REQUESTS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  USER_CONTEXT_HEADER,
  "authorization",
  "host",
  "content-length",
  "forwarded",
  "x-real-ip",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-forwarded-server",
]);

const NONE: ReadonlySet<string> = new Set();

/** Some servers read `_` as `-`, so headers are compared in that form (threats.md X11). */
const canonical = (name: string): string => {
  const lower = name.toLowerCase();
  return lower.includes("_") ? lower.replaceAll("_", "-") : lower;
};

/** Connection options that do not name a header. */
const PLAIN_CONNECTION = /^(?:keep-alive|close|upgrade)$/i;

/** Names that the sender's Connection header declares as valid for this hop only (threats.md X10). */
const listedHeaders = (raw: readonly string[], connection: string | undefined): ReadonlySet<string> => {
  if (connection === undefined || PLAIN_CONNECTION.test(connection)) return NONE;
  const names = new Set<string>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (canonical(raw[at] ?? "") !== "connection") continue;
    for (const name of (raw[at + 1] ?? "").split(",")) names.add(canonical(name.trim()));
  }
  return names;
};

/** Every value of a header, one element for each occurrence. */
export const headerValues = (request: IncomingMessage, header: string): string[] => {
  const raw = request.rawHeaders;
  const values: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? "";
    if (name.length === header.length && name.toLowerCase() === header) values.push(raw[at + 1] ?? "");
  }
  return values;
};

/** Methods whose request Node would frame as chunked even without a body. */
const EXPECTS_BODY = new Set(["POST", "PUT", "PATCH"]);

/** Whether the request has a body, possibly an empty one. */
export const hasBody = ({ headers }: IncomingMessage): boolean => {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
};

/** The framing is ours: the length or coding that the parser found, stated once (threats.md X14). */
const addFraming = (request: IncomingMessage, to: string[]): void => {
  const length = request.headers["content-length"];
  if (request.headers["transfer-encoding"] !== undefined) to.push("transfer-encoding", "chunked");
  else if (length !== undefined) to.push("content-length", length);
  else if (EXPECTS_BODY.has(request.method ?? "")) to.push("content-length", "0");
};

/** The request's origin, for the app: each field becomes one `X-Forwarded-*` header. */
export interface Forwarded {
  readonly for: string;
  readonly host: string;
  readonly proto: string;
}

/** A hop's own header rules, in addition to the common ones. */
export interface HeaderRules {
  /** The value of the Host header. */
  readonly host: string;
  /** Replaces the values of the connection itself. Only a hop that knows better sets it, never a client (X13). */
  readonly forwarded?: Forwarded;
  /** Maps the value of a header that passes, in either direction. Null drops the header. */
  readonly rewrite?: (name: string, value: string) => string | null;
}

type Rewrite = HeaderRules["rewrite"];

const rewriteValue = (rewrite: Rewrite, name: string, value: string): string | null =>
  rewrite === undefined ? value : rewrite(name.toLowerCase(), value);

/** Raw headers of the request to an upstream. `more` are additional ones, name before value. */
export const requestHeaders = (
  request: IncomingMessage,
  rules: HeaderRules,
  more: readonly string[],
): string[] => {
  const { rawHeaders: raw, headers } = request;
  const droppedNames = listedHeaders(raw, headers.connection);
  const rawResult = ["host", rules.host];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [written = "", value = ""] = [raw[at], raw[at + 1]];
    const name = canonical(written);
    if (NOT_OF_REQUESTS.has(name) || droppedNames.has(name)) continue;
    const newValue = rewriteValue(rules.rewrite, written, value);
    if (newValue !== null) rawResult.push(written, newValue);
  }
  addFraming(request, rawResult);
  const { forwarded } = rules;
  rawResult.push("x-forwarded-for", forwarded?.for ?? request.socket.remoteAddress ?? "unknown");
  rawResult.push("x-forwarded-host", forwarded?.host ?? headers.host ?? "");
  rawResult.push("x-forwarded-proto", forwarded?.proto ?? "http", ...more);
  return rawResult;
};

const NO_CONTENT = 204;

/** Raw headers of the answer to the client, without those of the hop to the upstream. */
export const responseHeaders = (answer: IncomingMessage, rewrite?: Rewrite): string[] => {
  const raw = answer.rawHeaders;
  const droppedNames = listedHeaders(raw, answer.headers.connection);
  const rawResult: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [written = "", value = ""] = [raw[at], raw[at + 1]];
    const name = canonical(written);
    if (NOT_OF_ANSWERS.has(name) || droppedNames.has(name)) continue;
    // RFC 9110, 8.6: without a body, no length. A client that believed the length would wait for ever.
    if (name === "content-length" && answer.statusCode === NO_CONTENT) continue;
    const newValue = rewriteValue(rewrite, written, value);
    if (newValue !== null) rawResult.push(written, newValue);
  }
  return rawResult;
};

/** Trailers as pairs. Names that may not be headers may not be trailers. */
export const trailers = (from: IncomingMessage): [string, string][] => {
  const raw = from.rawTrailers;
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]];
    if (!NOT_OF_REQUESTS.has(canonical(name))) pairs.push([name, value]);
  }
  return pairs;
};
