/** What the egress proxy and the package proxy share: refusals, and headers that pass a proxy. */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { type NetCause, NetFault } from "../ground/net/fault.ts";

/** Headers for one connection only (RFC 9110, 7.6.1), or for the proxy itself. */
export const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The proxy answers a request itself. The message is for people. */
export class Refusal extends Error {
  readonly status: 400 | 403 | 502 | 504;
  constructor(status: 400 | 403 | 502 | 504, message: string) {
    super(message);
    this.status = status;
  }
}

const statusFor = (cause: NetCause): Refusal["status"] => {
  switch (cause._tag) {
    case "ForbiddenAddress":
    case "PlainHttp":
      return 403;
    case "Redirect":
      return cause.kind === "refused" ? 403 : 502;
    case "Late":
      return 504;
    default:
      return 502;
  }
};

/** The refusal for any error. Texts of the system are left out. */
export const refusalFor = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error;
  return error instanceof NetFault
    ? new Refusal(statusFor(error.reason), error.message)
    : new Refusal(502, "the host could not be reached");
};

const PHRASE_MAX = 200;
/**
 * The cause as the status line's phrase, in printable ASCII. A runtime that asked for a tunnel shows this alone: it drops
 * the body.
 */
export const reasonPhrase = ({ message }: Refusal, host: string | null): string => {
  const whole = host === null || message.includes(host) ? message : `${host}: ${message}`;
  return `Refused: ${whole}`
    .replaceAll(/[^\x20-\x7E]+/g, "?")
    .slice(0, PHRASE_MAX)
    .trim();
};

/** The answer's body, as JSON. */
export const refusalBody = (refusal: Refusal): string =>
  `${JSON.stringify({ error: `egress proxy: ${refusal.message}`, code: refusal.status === 403 ? "egress_refused" : "egress_failed" })}\n`;

/** The headers that are not for the proxy itself. Repeated ones stay repeated. */
export const endToEndHeaders = (message: IncomingMessage): OutgoingHttpHeaders => {
  const connectionNames = (message.headers.connection ?? "").toLowerCase().split(/\s*,\s*/);
  const headers: Record<string, string[]> = {};
  for (let index = 0; index + 1 < message.rawHeaders.length; index += 2) {
    const name = message.rawHeaders[index] ?? "";
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || connectionNames.includes(lower)) continue;
    (headers[lower] ??= []).push(message.rawHeaders[index + 1] ?? "");
  }
  return headers;
};
