/** A real WebSocket client and server with the daemon between them. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer, type ServerOptions } from "ws";
import { signUserContext } from "../../../src/domain/sandbox/user-context.ts";
import { contextHeader, Served, SESSION_ID, TOKEN } from "../support/served.ts";

const MIB = 1024 * 1024;
let served: Served;
const clients: WebSocket[] = [];
beforeEach(async () => {
  served = await Served.start((_, response) => response.end("runtime"));
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.terminate();
  await served.stop();
});

/** Echoes what it gets, as it got it. */
const startEcho = async (
  options: ServerOptions = {},
): Promise<{ readonly port: number; readonly sockets: WebSocketServer }> => {
  const server = createServer();
  const sockets = new WebSocketServer({ server, ...options });
  sockets.on("connection", (socket) => {
    socket.on("error", () => undefined);
    socket.on("message", (message, isBinary) => socket.send(message, { binary: isBinary }));
  });
  return { port: await served.upstream(server), sockets };
};

const open = (port: number, options: WebSocket.ClientOptions = {}, context = contextHeader()): WebSocket => {
  const client = new WebSocket(`ws+unix:${served.socketPath}:/proxy/${port}/socket`, ["one", "two"], {
    headers: { "x-platform-user-context": context },
    ...options,
  });
  client.on("error", () => undefined);
  clients.push(client);
  return client;
};

const nextOf = async (client: WebSocket): Promise<readonly [string, boolean]> => {
  const [message, isBinary] = (await once(client, "message")) as [Buffer, boolean];
  return [message.toString("latin1"), isBinary];
};

describe("a WebSocket through the daemon", () => {
  test("carries text, bytes and fragments, and keeps their types", async () => {
    const { port } = await startEcho({ handleProtocols: () => "two" });
    const client = open(port);
    await once(client, "open");
    expect(client.protocol).toBe("two");
    client.send("text");
    expect(await nextOf(client)).toEqual(["text", false]);
    client.send(Buffer.from([0, 255, 10, 13]));
    expect(await nextOf(client)).toEqual(["\0\xff\n\r", true]);
    client.send("frag", { fin: false });
    client.send("men", { fin: false });
    client.send("ted", { fin: true });
    expect(await nextOf(client)).toEqual(["fragmented", false]);
    client.send("");
    expect(await nextOf(client)).toEqual(["", false]);
  });

  test("carries pings and pongs in both directions", async () => {
    const { port, sockets } = await startEcho();
    const client = open(port);
    await once(client, "open");
    client.ping("from the client");
    expect(String((await once(client, "pong"))[0])).toBe("from the client");
    const [server] = sockets.clients;
    server?.ping("from the server");
    expect(String((await once(server ?? client, "pong"))[0])).toBe("from the server");
  });

  test.each([
    [1000, "done"],
    [4321, "of the application's own"],
  ])("passes the close code %i on, from either side", async (code, reason) => {
    const { port, sockets } = await startEcho();
    for (const from of ["client", "server"] as const) {
      const client = open(port);
      await once(client, "open");
      const [server] = [...sockets.clients].slice(-1);
      if (server === undefined) throw new Error("the server has the connection");
      const [closing, other] = from === "client" ? [client, server] : [server, client];
      const heard = once(other, "close");
      closing.close(code, reason);
      const [heardCode, heardReason] = (await heard) as [number, Buffer];
      expect([heardCode, heardReason.toString()]).toEqual([code, reason]);
    }
  });

  test("reports 1006 to one side when the other is cut off", async () => {
    const { port, sockets } = await startEcho();
    const client = open(port);
    await once(client, "open");
    const heard = once(client, "close");
    for (const server of sockets.clients) server.terminate();
    expect((await heard)[0]).toBe(1006);
  });

  test("negotiates compression end to end", async () => {
    const { port, sockets } = await startEcho({ perMessageDeflate: { threshold: 0 } });
    const client = open(port, { perMessageDeflate: { threshold: 0 } });
    await once(client, "open");
    expect(client.extensions).toContain("permessage-deflate");
    expect([...sockets.clients].map(({ extensions }) => extensions)).toEqual([client.extensions]);
    const text = "the same again ".repeat(10_000);
    client.send(text);
    expect(await nextOf(client)).toEqual([text, false]);
  });

  test("carries 100 MiB in fragments to a server that does not read at first, and holds the sender back [X15]", async () => {
    const server: Server = createServer();
    const sockets = new WebSocketServer({ server, maxPayload: 128 * MIB, perMessageDeflate: false });
    const port = await served.upstream(server);
    const taken = once(sockets, "connection");
    const client = open(port, { perMessageDeflate: false });
    await once(client, "open");
    const [reader] = (await taken) as [WebSocket];
    reader.pause();
    const hash = createHash("sha256");
    const whole = 100;
    for (let index = 0; index < whole; index += 1) {
      const block = Buffer.alloc(MIB, index);
      hash.update(block);
      client.send(block, { fin: index === whole - 1, binary: true });
    }
    // As many other requests go through as would have carried it all, had anything on the way collected it.
    let [before, still] = [-1, 0];
    while (still < 50) {
      still = client.bufferedAmount === before ? still + 1 : 0;
      before = client.bufferedAmount;
      await served.ask("/small");
    }
    expect(client.bufferedAmount).toBeGreaterThan(68 * MIB);
    const came = once(reader, "message");
    reader.resume();
    const [message] = (await came) as [Buffer];
    expect(createHash("sha256").update(message).digest("hex")).toBe(hash.digest("hex"));
  });

  test("outlives its context, which is required at its beginning alone [X09]", async () => {
    const { port } = await startEcho();
    // oxlint-disable-next-line no-restricted-properties -- the server under test reads the machine's clock
    const nowMs = Date.now() - 58_000;
    const context = signUserContext({ userId: "u", sessionId: SESSION_ID, role: "owner", nowMs }, TOKEN);
    const client = open(port, {}, context);
    await once(client, "open");
    // The daemon itself says when it has expired.
    const headers = { "x-platform-user-context": context };
    while ((await served.ask("/", { headers })).response.statusCode === 200);
    const refused = open(port, {}, context);
    const [, answer] = (await once(refused, "unexpected-response")) as [unknown, { statusCode: number }];
    expect(answer.statusCode).toBe(401);
    client.send("still here");
    expect(await nextOf(client)).toEqual(["still here", false]);
  });
});

/** All that comes until the other side ends its half; ours stays as it is. */
const heardOn = async (socket: Socket): Promise<string> => {
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await once(socket, "end");
  return text;
};

describe("an upgraded connection", () => {
  const AGREED = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

  /** An upstream that agrees and then does as it is told; its connection, and the client's. */
  const joined = async (serve: (socket: Socket) => void): Promise<readonly [Socket, Socket]> => {
    const server = createServer();
    server.on("upgrade", (_, socket: Socket) => {
      socket.on("error", () => undefined);
      socket.write(AGREED);
      serve(socket);
    });
    const port = await served.upstream(server);
    const agreed = once(server, "upgrade");
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      "x-platform-user-context": contextHeader(),
    };
    // A client with allowHalfOpen ends its own side itself.
    const handshake = request({
      path: `/proxy/${port}/`,
      headers,
      createConnection: () => connect({ path: served.socketPath, allowHalfOpen: true }),
    });
    handshake.end();
    const [, client, head] = (await once(handshake, "upgrade")) as [unknown, Socket, Buffer];
    if (head.length > 0) client.unshift(head);
    const [, upstream] = (await agreed) as [unknown, Socket];
    return [client, upstream];
  };

  test("lets the client end its side and still receive", async () => {
    const [client, upstream] = await joined((socket) =>
      socket.on("end", () => socket.end("last word")).resume(),
    );
    const closed = once(upstream, "close");
    client.end("first word");
    expect(await heardOn(client)).toBe("last word");
    await closed;
  });

  test("lets the upstream end its side and still receive", async () => {
    const [client, upstream] = await joined((socket) => socket.end("first word"));
    expect(await heardOn(client)).toBe("first word");
    const heard = heardOn(upstream);
    client.end("last word");
    expect(await heard).toBe("last word");
  });
});
