/**
 * The upstream of idle streams and WebSockets: each gets one word at the start, and one more when it is told so. It also
 * takes uploads to their end: nginx answers them before it has read them.
 */
import { createServer, type ServerResponse } from "node:http";
import { WebSocketServer } from "ws";
import { portOf, tellPort } from "./listening.ts";

const streams = new Set<ServerResponse>();
const server = createServer((request, response) => {
  if (request.url === "/tell") {
    for (const stream of streams) stream.write("data: told\n\n");
    for (const socket of sockets.clients) socket.send("told");
    return response.end();
  }
  if (request.method === "PUT") return request.on("end", () => response.end()).resume();
  streams.add(response);
  response.on("close", () => streams.delete(response));
  response.writeHead(200, { "content-type": "text/event-stream" });
  return response.write("data: begun\n\n");
});
const sockets = new WebSocketServer({ server, perMessageDeflate: false });
sockets.on("connection", (socket) => {
  socket.on("error", () => undefined);
  socket.send("begun");
});
tellPort(await portOf(server));
