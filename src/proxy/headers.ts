/** Which headers pass a proxy and which do not, over Node's flat raw lists `[name, value, name, value, …]`. */
import type { IncomingMessage } from "node:http";
import { USER_CONTEXT_HEADER } from "../domain/user-context.ts";

/** Connection-level headers (RFC 9110, 7.6.1). `Trailer` stays: trailers are passed on. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** Never handed on: the context, the caller's credential, and what only we may say (X11, X13). */
const OURS = new Set([
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

/** Some servers read `_` as `-`, so a header is judged as if it had been written so (threats.md X11). */
const canonical = (name: string): string => name.toLowerCase().replaceAll("_", "-");

export const pairs = (raw: readonly string[]): [string, string][] => {
  const found: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) found.push([raw[at] ?? "", raw[at + 1] ?? ""]);
  return found;
};

/** Names that the sender's Connection header declares to be for this hop only (threats.md X10). */
const listed = (headers: readonly [string, string][]): Set<string> =>
  new Set(
    headers
      .filter(([name]) => canonical(name) === "connection")
      .flatMap(([, value]) => value.split(","))
      .map((name) => canonical(name.trim())),
  );

/** Every value of a header, one element for each time it was sent. */
export const valuesOf = (request: IncomingMessage, header: string): string[] =>
  pairs(request.rawHeaders)
    .filter(([name]) => name.toLowerCase() === header)
    .map(([, value]) => value);

/** Methods whose request Node would frame as chunked although no body comes. */
const EXPECTS_BODY = new Set(["POST", "PUT", "PATCH"]);

/** The framing is ours: what the parser understood of the request, stated once (threats.md X14). */
const framing = (request: IncomingMessage): string[] => {
  if (request.headers["transfer-encoding"] !== undefined) return ["transfer-encoding", "chunked"];
  const length = request.headers["content-length"];
  if (length !== undefined) return ["content-length", length];
  return EXPECTS_BODY.has(request.method ?? "") ? ["content-length", "0"] : [];
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

const rewritten = (
  headers: readonly [string, string][],
  rewrite: HeaderRules["rewrite"],
): readonly [string, string][] =>
  rewrite === undefined
    ? headers
    : headers.flatMap(([name, value]): [string, string][] => {
        const passed = rewrite(name.toLowerCase(), value);
        return passed === null ? [] : [[name, passed]];
      });

const forwardedBy = (request: IncomingMessage): Forwarded => ({
  for: request.socket.remoteAddress ?? "unknown",
  host: request.headers.host ?? "",
  proto: "http",
});

/** Raw headers of the request to the upstream. */
export const requestHeaders = (request: IncomingMessage, rules: HeaderRules): string[] => {
  const headers = pairs(request.rawHeaders);
  const forwarded = rules.forwarded ?? forwardedBy(request);
  const dropped = listed(headers);
  const passed = headers.filter(([raw]) => {
    const name = canonical(raw);
    return !HOP_BY_HOP.has(name) && !OURS.has(name) && !dropped.has(name);
  });
  return [
    "host",
    rules.host,
    ...rewritten(passed, rules.rewrite).flat(),
    ...framing(request),
    "x-forwarded-for",
    forwarded.for,
    "x-forwarded-host",
    forwarded.host,
    "x-forwarded-proto",
    forwarded.proto,
  ];
};

/** Raw headers of the answer to the client: all but those of the hop to the upstream. */
export const responseHeaders = (answer: IncomingMessage, { rewrite }: HeaderRules): string[] => {
  const headers = pairs(answer.rawHeaders);
  const dropped = listed(headers);
  const passed = headers.filter(
    ([name]) => !HOP_BY_HOP.has(canonical(name)) && !dropped.has(canonical(name)),
  );
  return rewritten(passed, rewrite).flat();
};
