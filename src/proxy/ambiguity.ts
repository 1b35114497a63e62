/**
 * What Node's strict parser accepts and another parser could read differently (threats.md W21, X14). It is refused before
 * it is routed, at both hops, so that an upstream sees one well-formed request or nothing.
 */
import type { IncomingMessage } from "node:http";
import { hasBody, valuesOf } from "./headers.ts";

const VERSIONS = new Set(["1.0", "1.1"]);

/** What to do instead, as the end of a sentence; null: the request can be read in one way only. */
export const ambiguityOf = (request: IncomingMessage): string | null => {
  const { headers, httpVersion, url } = request;
  if (url?.startsWith("/") !== true) return "the request target is not a path";
  if (!VERSIONS.has(httpVersion)) return "send HTTP/1.1";
  if (valuesOf(request, "host").length > 1) return "send one Host header";
  const encoding = headers["transfer-encoding"];
  if (encoding === undefined) return null;
  if (httpVersion === "1.0") return "HTTP/1.0 has no transfer encoding";
  // Node undoes the chunks of "gzip, chunked" and leaves the rest, which nothing would name any more.
  return encoding.toLowerCase() === "chunked" ? null : "the one transfer encoding is chunked";
};

/** The same of a request that asks for an upgrade: bytes of a body could be taken for bytes behind it. */
export const upgradeAmbiguityOf = (request: IncomingMessage): string | null =>
  ambiguityOf(request) ?? (hasBody(request) ? "an upgrade has no body" : null);
