/** Which headers pass a proxy and which do not, over Node's flat raw lists `[name, value, name, value, …]`. */
import type { IncomingMessage } from "node:http";
import { USER_CONTEXT_HEADER } from "../domain/user-context.ts";

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

/** Of an answer only what belongs to its connection is dropped. */
const NOT_OF_ANSWERS: ReadonlySet<string> = new Set(HOP_BY_HOP);

/** Of a request also the context, the caller's credential, and what only we may say (X11, X13). */
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

/** Some servers read `_` as `-`, so a header is judged as if it had been written so (threats.md X11). */
const canonical = (name: string): string => {
  const lower = name.toLowerCase();
  return lower.includes("_") ? lower.replaceAll("_", "-") : lower;
};

/** What a sender may say of its connection and name no header by it. */
const PLAIN_CONNECTION = /^(?:keep-alive|close|upgrade)$/i;

/** Names that the sender's Connection header declares to be for this hop only (threats.md X10). */
const listed = (raw: readonly string[], connection: string | undefined): ReadonlySet<string> => {
  if (connection === undefined || PLAIN_CONNECTION.test(connection)) return NONE;
  const names = new Set<string>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (canonical(raw[at] ?? "") !== "connection") continue;
    for (const name of (raw[at + 1] ?? "").split(",")) names.add(canonical(name.trim()));
  }
  return names;
};

/** Every value of a header, one element for each time it was sent. */
export const valuesOf = (request: IncomingMessage, header: string): string[] => {
  const raw = request.rawHeaders;
  const values: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? "";
    if (name.length === header.length && name.toLowerCase() === header) values.push(raw[at + 1] ?? "");
  }
  return values;
};

/** Methods whose request Node would frame as chunked although no body comes. */
const EXPECTS_BODY = new Set(["POST", "PUT", "PATCH"]);

/** Whether a body belongs to the request, be it empty when it comes. */
export const hasBody = ({ headers }: IncomingMessage): boolean => {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
};

/** The framing is ours: what the parser understood of the request, stated once (threats.md X14). */
const addFraming = (request: IncomingMessage, to: string[]): void => {
  const length = request.headers["content-length"];
  if (request.headers["transfer-encoding"] !== undefined) to.push("transfer-encoding", "chunked");
  else if (length !== undefined) to.push("content-length", length);
  else if (EXPECTS_BODY.has(request.method ?? "")) to.push("content-length", "0");
};

/** Where a request comes from, as its app is told: each of them one `X-Forwarded-*` header. */
export interface Forwarded {
  readonly for: string;
  readonly host: string;
  readonly proto: string;
}

/** What a hop does to headers, beside what every hop does. */
export interface HeaderRules {
  /** Value of the Host header. */
  readonly host: string;
  /** Said in place of what the connection itself tells: by a hop that knows better, never by a client (X13). */
  readonly forwarded?: Forwarded;
  /** What becomes of the value of a header that passes, in either direction; null: the header is dropped. */
  readonly rewrite?: (name: string, value: string) => string | null;
}

type Rewrite = HeaderRules["rewrite"];

const rewritten = (rewrite: Rewrite, name: string, value: string): string | null =>
  rewrite === undefined ? value : rewrite(name.toLowerCase(), value);

/** Raw headers of the request to an upstream; `added` are some more, name before value. */
export const requestHeaders = (
  request: IncomingMessage,
  rules: HeaderRules,
  added: readonly string[],
): string[] => {
  const { rawHeaders: raw, headers } = request;
  const dropped = listed(raw, headers.connection);
  const passed = ["host", rules.host];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [written = "", value = ""] = [raw[at], raw[at + 1]];
    const name = canonical(written);
    if (NOT_OF_REQUESTS.has(name) || dropped.has(name)) continue;
    const kept = rewritten(rules.rewrite, written, value);
    if (kept !== null) passed.push(written, kept);
  }
  addFraming(request, passed);
  const { forwarded } = rules;
  passed.push("x-forwarded-for", forwarded?.for ?? request.socket.remoteAddress ?? "unknown");
  passed.push("x-forwarded-host", forwarded?.host ?? headers.host ?? "");
  passed.push("x-forwarded-proto", forwarded?.proto ?? "http", ...added);
  return passed;
};

const NO_CONTENT = 204;

/** Raw headers of the answer to the client: all but those of the hop to the upstream. */
export const responseHeaders = (answer: IncomingMessage, rewrite?: Rewrite): string[] => {
  const raw = answer.rawHeaders;
  const dropped = listed(raw, answer.headers.connection);
  const passed: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [written = "", value = ""] = [raw[at], raw[at + 1]];
    const name = canonical(written);
    if (NOT_OF_ANSWERS.has(name) || dropped.has(name)) continue;
    // RFC 9110, 8.6: no body, no length; a client that believed it would wait for ever.
    if (name === "content-length" && answer.statusCode === NO_CONTENT) continue;
    const kept = rewritten(rewrite, written, value);
    if (kept !== null) passed.push(written, kept);
  }
  return passed;
};

/** Trailers as pairs; what may not be said in front may not be said behind. */
export const trailers = (from: IncomingMessage): [string, string][] => {
  const raw = from.rawTrailers;
  const found: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]];
    if (!NOT_OF_REQUESTS.has(canonical(name))) found.push([name, value]);
  }
  return found;
};
