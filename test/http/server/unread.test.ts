/** A sender that reads the answer only when it has sent everything, as Python's urllib does (threats.md W17). */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { keepReading } from "../../../src/http/reading/unread.ts";

/** More than the buffers of the system hold. */
const BYTES = 26 * 1024 * 1024;

let server: Server;
let port = 0;
beforeAll(async () => {
  server = createServer((request, response) => {
    response.on("prefinish", () => keepReading(request));
    response.writeHead(413, { connection: "close", "content-length": 2 }).end("no");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => server.close());

const sendAll = (socket: Socket, bytes: number): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${BYTES}\r\n\r\n`);
    socket.write(Buffer.alloc(bytes), (error) => (error ? reject(error) : resolve()));
  });

it("gets the answer of a request that is refused before its body is complete, and the connection ends with the body", async () => {
  const socket = connect({ host: "127.0.0.1", port });
  socket.pause();
  await sendAll(socket, BYTES);
  const answer: string[] = [];
  socket.on("data", (chunk) => answer.push(String(chunk)));
  socket.resume();
  await once(socket, "close");
  expect(answer.join("")).toMatch(/^HTTP\/1\.1 413 [^]*no$/);
});
