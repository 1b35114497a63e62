/** Bytes on a bare connection, for requests that no HTTP client would send. */
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { connect } from "node:net";

/** Writes the bytes and reads until the other side closes. @returns all received bytes, as latin1 text. */
export const exchange = (port: number, bytes: string | Uint8Array): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    const done = () => {
      socket.destroy();
      resolve(Buffer.concat(chunks).toString("latin1"));
    };
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("end", done);
    // A connection that is cut after it was open still has a result. One that never opened is an error.
    socket.on("error", (error) => (socket.bytesWritten > 0 ? done() : reject(error)));
  });

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** The first answer in the received text. Status 0 without one. */
export const parseAnswer = (text: string): RawAnswer => {
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [first = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const byName = new Map(headers);
  const length = Number(byName.get("content-length") ?? Number.POSITIVE_INFINITY);
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? 0),
    headers: byName,
    body: rest.join("\r\n\r\n").slice(0, length),
  };
};

/** Opens the address of a preview in a browser. @returns the lines of its requests */
export const visitPreview = async (address: string, port: number): Promise<readonly string[]> => {
  const { host, pathname, search } = new URL(address);
  const path = `${pathname}${search}`;
  const opening = request({ host: "127.0.0.1", port, path, headers: { host } }).end();
  const [opened] = (await once(opening, "response")) as [IncomingMessage];
  opened.resume();
  return [`Host: ${host}`, `Cookie: ${opened.headers["set-cookie"]?.[0]?.split(";")[0] ?? ""}`];
};

/** The headers of a WebSocket's handshake. */
export const WEBSOCKET = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};
