/** Servers that only this machine's own programs may ask. They listen on the loopback address. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

export const OWN_HOST = "127.0.0.1";

export const ownPort = (server: Server): number => (server.address() as AddressInfo).port;

/** A request under another host name comes from a foreign page. Only this machine's own programs get answers. */
export const isOwnHost = (server: Server, host: string | undefined): boolean =>
  [`${OWN_HOST}:${ownPort(server)}`, `localhost:${ownPort(server)}`].includes(host ?? "");
