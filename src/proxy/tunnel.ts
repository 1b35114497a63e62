/** Joins two upgraded connections (api.md 7): bytes both ways with back-pressure, and each side's end is passed on. */
import { ServerResponse, type IncomingMessage } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { destroySoon } from "./answer.ts";

/** Answers on the bare socket of an upgrade request with Node's own serialiser. */
export const responseOn = (request: IncomingMessage, socket: Duplex): ServerResponse => {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  socket.on("error", () => socket.destroy());
  response.assignSocket(socket as Socket);
  response.on("finish", () => {
    if (response.statusCode === 101) return;
    socket.end();
    // A refused peer may keep its half open, and no timeout of Node would end it.
    destroySoon(socket);
  });
  return response;
};

export class Tunnels {
  readonly #open = new Set<Duplex>();
  readonly #halfOpenMs: number;

  constructor(halfOpenMs: number) {
    this.#halfOpenMs = halfOpenMs;
  }

  /** Joins them until both have ended, or one is broken. */
  join(client: Duplex, upstream: Duplex): void {
    this.#lead(client, upstream);
    this.#lead(upstream, client);
  }

  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #lead(from: Duplex, to: Duplex): void {
    this.#open.add(from);
    if (from instanceof Socket) from.setNoDelay(true).setTimeout(0);
    from.pipe(to);
    from.on("end", () => {
      // The other side may still send. If it stays silent, its peer is gone, and it is closed.
      if (to instanceof Socket) to.setTimeout(this.#halfOpenMs, () => to.destroy());
    });
    from.on("error", () => to.destroy());
    from.on("close", () => {
      this.#open.delete(from);
      // If one side closed properly, both ends have been exchanged, and pending writes to the other side still go out.
      if (!from.readableEnded || !from.writableFinished) to.destroy();
    });
  }
}
