import type { IncomingMessage } from "node:http";

/**
 * Has Node close the sending half alone of a connection whose request is answered before its body is complete. The system would
 * otherwise reset the connection, and a sender that reads only after it has sent everything would not see the answer. The rest of the
 * body is dropped. The server decides how long it may still come.
 */
export const keepReading = (request: IncomingMessage): void => {
  if (request.complete) return;
  const { socket } = request;
  socket.destroySoon = () => void socket.end();
  request.on("end", () => {
    Reflect.deleteProperty(socket, "destroySoon");
    if (socket.writableEnded) socket.destroy();
  });
};
