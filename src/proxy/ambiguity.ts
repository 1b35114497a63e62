/**
 * Requests that Node's strict parser accepts and another parser could read differently (threats.md W21, X14). Both hops
 * refuse them before routing, so that an upstream sees one well-formed request or nothing.
 */
import type { IncomingMessage } from "node:http";
import { hasBody, headerValues } from "./headers.ts";

const VERSIONS = new Set(["1.0", "1.1"]);

/** What to send instead, as the end of a sentence. Null if the request is unambiguous. */
export const requestAmbiguity = (request: IncomingMessage): string | null => {
  const { headers, httpVersion, url } = request;
  if (url?.startsWith("/") !== true) return "the request target is not a path";
  if (!VERSIONS.has(httpVersion)) return "send HTTP/1.1";
  if (headerValues(request, "host").length > 1) return "send one Host header";
  const encoding = headers["transfer-encoding"];
  if (encoding === undefined) return null;
  if (httpVersion === "1.0") return "HTTP/1.0 does not support transfer encodings";
  // Of "gzip, chunked" Node decodes the chunks and leaves the gzip, and then no header would name that coding.
  return encoding.toLowerCase() === "chunked" ? null : "the only supported transfer encoding is chunked";
};

/** The same for an upgrade request: bytes of a body could be read as the first bytes after the upgrade. */
export const upgradeAmbiguity = (request: IncomingMessage): string | null =>
  requestAmbiguity(request) ?? (hasBody(request) ? "an upgrade request must not have a body" : null);
