// A WebSocket server of the usual library, for tests of the relay and of previews: it echoes messages, and does what some
// texts ask for. Over plain HTTP it has a stream that stays open. Usage: node websocket-server.mjs <port>
import { createServer } from "node:http";
import { WebSocketServer } from "ws";

const server = createServer((request, response) => {
  if (request.url !== "/stream") return response.end("here");
  return response.writeHead(200, { "content-type": "text/event-stream" }).write("data: first\n\n");
});
const sockets = new WebSocketServer({
  server,
  maxPayload: 4 * 1024 * 1024,
  perMessageDeflate: { threshold: 0 },
});
/** How the newest connection that ended was closed, as this side heard it. */
let closed = "";
sockets.on("connection", (socket, request) => {
  socket.on("close", (code, reason) => (closed = `${code} ${reason}`));
  socket.on("ping", (text) => socket.send(`pinged with ${text}`));
  socket.on("pong", (text) => socket.send(`ponged with ${text}`));
  socket.on("message", (message, isBinary) => {
    const [asked, ...rest] = isBinary ? [] : String(message).split(" ");
    if (asked === "ping") socket.ping(rest.join(" "));
    else if (asked === "close") socket.close(Number(rest[0]), rest.slice(1).join(" "));
    else if (asked === "closed") socket.send(closed);
    else if (asked === "headers") socket.send(JSON.stringify(request.headers));
    else socket.send(message, { binary: isBinary });
  });
});
server.listen(Number(process.argv[2]), "127.0.0.1");
