// What an agent's program behind `…/ports/{port}/` may be, for tests of the relay: it streams, echoes upgraded
// connections, and counts what is open. Usage: node port-server.mjs <port>
import { createHash } from "node:crypto";
import { createServer } from "node:http";

const WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Streams and upgraded connections that are open now, and that ever began. */
const counted = { open: 0, begun: 0 };
const count = (connection) => {
  counted.open += 1;
  counted.begun += 1;
  connection.on("close", () => (counted.open -= 1));
};

const answer = (request, response) => {
  if (request.url !== "/stream") return response.end(JSON.stringify(counted));
  count(response);
  response.writeHead(200, { "content-type": "text/event-stream" }).write("data: first\n\n");
};

const server = createServer(answer);
server.on("upgrade", (request, socket) => {
  count(socket);
  socket.on("error", () => socket.destroy());
  const accept = createHash("sha1")
    .update(`${request.headers["sec-websocket-key"]}${WEBSOCKET}`)
    .digest("base64");
  const fields = ["Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields.join("\r\n")}\r\n\r\n`);
  socket.pipe(socket);
});
server.listen(Number(process.argv[2]), "127.0.0.1");
