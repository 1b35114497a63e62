// A WebSocket server of the usual library, for tests of the relay and of previews: it echoes messages. Usage: node websocket-server.mjs <port>
import { createServer } from "node:http";
import { WebSocketServer } from "ws";

const server = createServer((_request, response) => response.end("here"));
const sockets = new WebSocketServer({
  server,
  maxPayload: 4 * 1024 * 1024,
  perMessageDeflate: { threshold: 0 },
});
sockets.on("connection", (socket) => {
  socket.on("message", (message, isBinary) => socket.send(message, { binary: isBinary }));
});
server.listen(Number(process.argv[2]), "127.0.0.1");
