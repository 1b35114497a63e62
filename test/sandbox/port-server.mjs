// What an agent's program behind `…/ports/{port}/` may be, for tests of the relay: it tells what reached it, streams,
// takes uploads, echoes upgraded connections, and counts what is open. Usage: node port-server.mjs <port>
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const BLOCK_BYTES = 64 * 1024;
const WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Streams and upgraded connections that are open now, ever begun, and bytes of the newest download made so far. */
const counted = { open: 0, begun: 0, made: 0 };
const count = (connection) => {
  counted.open += 1;
  counted.begun += 1;
  connection.on("close", () => (counted.open -= 1));
};

/** Each block is filled with its own number, so that a lost or doubled one shows. */
function* blocks(bytes) {
  for (counted.made = 0; counted.made < bytes;) {
    const block = Buffer.alloc(
      Math.min(BLOCK_BYTES, bytes - counted.made),
      (counted.made / BLOCK_BYTES) & 255,
    );
    counted.made += block.length;
    yield block;
  }
}

const upload = async (request, response) => {
  response.writeHead(200, { trailer: "x-bytes" });
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of request) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  response.addTrailers({ "x-bytes": String(bytes) });
  response.end(JSON.stringify({ bytes, sha256: hash.digest("hex"), trailers: request.rawTrailers }));
};

const answer = async (request, response) => {
  const [, route, argument] = request.url.split("/");
  if (route === "download") {
    response.setHeader("content-length", argument);
    if (request.method === "HEAD") return response.end();
    return pipeline(Readable.from(blocks(Number(argument))), response);
  }
  if (route === "stream") {
    count(response);
    return response.writeHead(200, { "content-type": "text/event-stream" }).write("data: first\n\n");
  }
  if (route === "cut") return response.write("half", () => request.socket.destroy());
  if (route === "upload") return upload(request, response);
  if (route === "headers") return response.end(JSON.stringify(request.rawHeaders));
  return response.end(JSON.stringify(counted));
};

const server = createServer((request, response) => {
  // Clients that break off are what is tested: they end nothing but their own request.
  answer(request, response).catch(() => response.destroy());
});
server.on("upgrade", (request, socket) => {
  count(socket);
  socket.on("error", () => socket.destroy());
  if (request.url === "/silent") return socket.on("end", () => socket.end()).resume();
  const accept = createHash("sha1")
    .update(`${request.headers["sec-websocket-key"]}${WEBSOCKET}`)
    .digest("base64");
  const fields = ["Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
  const came = `X-Came: ${JSON.stringify(request.rawHeaders)}`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${[...fields, came].join("\r\n")}\r\n\r\n`);
  return socket.pipe(socket);
});
server.listen(Number(process.argv[2]), "127.0.0.1");
