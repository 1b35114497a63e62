/**
 * Tunnels to the service. Node's `fetch` asks for one even where a plain request would do. The proxy reads what goes through
 * and passes each request on by itself, so a tunnel opens nothing that a plain request does not.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

export interface ServiceTunnels {
  /** Reads a client's requests from now on. */
  readonly accept: (client: Duplex) => void;
  readonly server: Server;
}

/** The proxy that a tunnel's requests go on to. */
interface Passing {
  readonly forward: RequestListener;
  /** Connects for an upgrade. @throws Refusal */
  readonly connect: (incoming: IncomingMessage) => Promise<Socket>;
  readonly refuse: (client: Duplex, error: unknown) => void;
}

const headLines = ({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string => {
  const lines = [`HTTP/1.1 ${statusCode ?? 502} ${statusMessage ?? ""}`];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2)
    lines.push(`${rawHeaders[index] ?? ""}: ${rawHeaders[index + 1] ?? ""}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
};

/** Joins client and service only after the service agreed: before that, further bytes would be another request. */
const upgrade = async (
  incoming: IncomingMessage,
  client: Duplex,
  connect: Passing["connect"],
): Promise<void> => {
  const socket = await connect(incoming);
  const upstream = request({
    createConnection: () => socket,
    method: incoming.method,
    path: incoming.url,
    headers: incoming.headers,
  });
  client.on("close", () => socket.destroy());
  socket.on("close", () => client.destroy());
  upstream.end();
  const answer = await Promise.race([
    once(upstream, "upgrade") as Promise<[IncomingMessage, Socket, Buffer]>,
    once(upstream, "response") as Promise<[IncomingMessage]>,
  ]);
  const [head, joined, rest] = answer;
  client.write(headLines(head));
  if (joined === undefined) {
    head.pipe(client);
    return;
  }
  client.write(rest);
  client.pipe(joined).pipe(client);
};

export const serviceTunnels = ({ forward, connect, refuse }: Passing): ServiceTunnels => {
  const server = createServer(
    { headersTimeout: 10_000, requestTimeout: 0, keepAliveTimeout: 5_000 },
    forward,
  );
  server.on("upgrade", (incoming: IncomingMessage, client: Duplex, head: Buffer) => {
    client.on("error", () => client.destroy());
    if (head.length > 0) client.unshift(head);
    upgrade(incoming, client, connect).catch((error: unknown) => refuse(client, error));
  });
  return {
    server,
    accept: (client) => {
      server.emit("connection", client);
    },
  };
};
