/** A way to the egress listener that counts who comes, and can be shut while open connections go on. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";

export class Front {
  readonly #host: string;
  readonly #server: Server;
  #waiting: { left: number; readonly seen: () => void } | null = null;

  /** @param target the port behind it, on the same address */
  constructor(host: string, target: () => number) {
    this.#host = host;
    this.#server = createServer((socket) => {
      const next = connect({ host, port: target() });
      socket.pipe(next).pipe(socket);
      for (const one of [socket, next])
        one.on("error", () => {
          socket.destroy();
          next.destroy();
        });
      if (this.#waiting !== null && (this.#waiting.left -= 1) === 0) this.#waiting.seen();
    });
  }

  async open(port = 0): Promise<number> {
    this.#server.listen(port, this.#host);
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  shut(): void {
    this.#server.close();
  }

  /** Until so many more connections have come. */
  looks(left: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting = { left, seen: resolve };
    return promise;
  }
}
