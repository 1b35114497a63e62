/** A server that does nothing but answer, a process of its own: what a request takes on a machine that is this busy. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** What it says to its parent once it listens. */
export interface Listening {
  readonly port: number;
}

const server = createServer((_request, response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": 2 }).end("{}");
});
server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies Listening);
});
process.on("disconnect", () => process.exit());
