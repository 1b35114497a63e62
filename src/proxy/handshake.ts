/**
 * The only upgrade that is passed on: a WebSocket's opening handshake (RFC 6455, 4.2.1). Both hops refuse every other
 * upgrade, because the next hop always gets `Upgrade: websocket`, whatever the client asked for.
 */
import type { IncomingMessage } from "node:http";
import { headerValues } from "./headers.ts";

export interface HandshakeFault {
  readonly status: 400 | 426;
  readonly error: string;
  readonly code: string;
  /** Headers of the answer. */
  readonly headers: Readonly<Record<string, string>>;
}

/** 16 bytes in base64: the last four bits of the last letter are zero. */
const KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/;
const VERSION = "13";

const invalid = (what: string): HandshakeFault => ({
  status: 400,
  error: `The WebSocket handshake is not valid: ${what}.`,
  code: "invalid_upgrade",
  headers: { connection: "close" },
});

/** RFC 6455, 4.4, and RFC 9110, 15.5.22: the answer names the version that the server supports. */
const otherVersion: HandshakeFault = {
  status: 426,
  error: "This WebSocket version is not supported; use version 13.",
  code: "unsupported_websocket_version",
  headers: { connection: "Upgrade, close", upgrade: "websocket", "sec-websocket-version": VERSION },
};

/** @returns the fault of an upgrade request. Null if it is a valid WebSocket handshake. */
export const handshakeFault = (request: IncomingMessage): HandshakeFault | null => {
  const [protocol, ...others] = headerValues(request, "upgrade");
  if (others.length > 0 || protocol?.trim().toLowerCase() !== "websocket")
    return invalid("send one Upgrade header with the value websocket");
  if (request.method !== "GET") return invalid("send it as GET");
  if (request.httpVersion !== "1.1") return invalid("send HTTP/1.1");
  const keys = headerValues(request, "sec-websocket-key");
  if (keys.length !== 1 || !KEY.test(keys[0] ?? ""))
    return invalid("send one Sec-WebSocket-Key header with 16 bytes in base64");
  const versions = headerValues(request, "sec-websocket-version");
  return versions.length === 1 && versions[0] === VERSION ? null : otherVersion;
};
