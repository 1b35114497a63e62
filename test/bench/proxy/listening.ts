/** What the bench's programs share: what they are told, and what they tell their parent. */
import { once } from "node:events";
import type { Server } from "node:net";
import type { AddressInfo } from "node:net";

export const TOKEN = "platform_sbx_token-of-the-sandbox-that-is-measured";
export const SESSION_ID = "0192d3a4-0000-7000-8000-0000000000aa";

/** Told once a program listens. */
export interface Listening {
  readonly port: number;
}

/** Listens on any free port and tells the parent. With the parent's end it ends. */
export const tellPort = (port: number): void => {
  process.send?.({ port } satisfies Listening);
  process.on("disconnect", () => process.exit());
  // Sent before memory is read: garbage must not count.
  process.on("message", () => {
    globalThis.gc?.();
    globalThis.gc?.();
    process.send?.({ port } satisfies Listening);
  });
};

export const portOf = async (server: Server): Promise<number> => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
};

/** Port of the upstream that a proxy is started for. */
export const upstreamPort = (): number => Number(process.argv[2]);
