/** Requests that ask for an upgrade and are no WebSocket's handshake, with the status that each gets at any hop. */

const KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
const VERSION = "Sec-WebSocket-Version: 13";
const WEBSOCKET = "Upgrade: websocket";

export interface HandshakeCase {
  readonly name: string;
  readonly status: 400 | 426;
  readonly method?: string;
  /** Beside `Connection: Upgrade`. */
  readonly lines: readonly string[];
}

/** The handshakes that are accepted. */
export const GOOD_HANDSHAKES: readonly (readonly string[])[] = [
  [WEBSOCKET, KEY, VERSION],
  ["Upgrade: WebSocket", KEY, VERSION],
];

export const BAD_HANDSHAKES: readonly HandshakeCase[] = [
  { name: "HTTP/2", status: 400, lines: ["Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__", KEY, VERSION] },
  { name: "an unknown protocol", status: 400, lines: ["Upgrade: foo", KEY, VERSION] },
  { name: "a list of protocols", status: 400, lines: ["Upgrade: websocket, h2c", KEY, VERSION] },
  { name: "two protocols", status: 400, lines: [WEBSOCKET, "Upgrade: h2c", KEY, VERSION] },
  { name: "websocket twice", status: 400, lines: [WEBSOCKET, WEBSOCKET, KEY, VERSION] },
  { name: "a version of websocket", status: 400, lines: ["Upgrade: websocket/13", KEY, VERSION] },
  { name: "POST", status: 400, method: "POST", lines: [WEBSOCKET, KEY, VERSION] },
  { name: "no key", status: 400, lines: [WEBSOCKET, VERSION] },
  { name: "two keys", status: 400, lines: [WEBSOCKET, KEY, KEY, VERSION] },
  { name: "a short key", status: 400, lines: [WEBSOCKET, "Sec-WebSocket-Key: c2hvcnQ=", VERSION] },
  {
    name: "a key with stray bits",
    status: 400,
    lines: [WEBSOCKET, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==", VERSION],
  },
  { name: "no version", status: 426, lines: [WEBSOCKET, KEY] },
  { name: "version 999", status: 426, lines: [WEBSOCKET, KEY, "Sec-WebSocket-Version: 999"] },
  { name: "version 8", status: 426, lines: [WEBSOCKET, KEY, "Sec-WebSocket-Version: 8"] },
  { name: "two versions", status: 426, lines: [WEBSOCKET, KEY, VERSION, "Sec-WebSocket-Version: 8"] },
];
