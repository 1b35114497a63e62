/**
 * Carries what the sandbox sends to 127.0.0.1:3128 to the service's egress proxy, byte for byte (api.md 8). The
 * sandbox's network namespace holds nothing but loopback, so this is its only way out; what may pass is decided at
 * the other end, outside the sandbox. Loaded into the daemon's process by the entrypoint (`node --import`), before
 * the daemon itself; plain JavaScript, so that nothing has to be built or parsed twice when a sandbox boots.
 */
import { createConnection, createServer } from "node:net";

const PORT = 3128;
/** The directory is bound, not the socket in it: a restarted service makes a new socket there. */
const PROXY_SOCKET = "/run/platform/proxy/egress.sock";
/** Connections beyond these are closed at once, as the proxy does. */
const CONNECTIONS_MAX = 512;

/** @param {import("node:net").Socket} client */
const carry = (client) => {
  const proxy = createConnection({ path: PROXY_SOCKET, allowHalfOpen: true });
  client.pipe(proxy).pipe(client);
  // Either end's failure ends both; a client cannot tell a proxy that is away from one that hangs up.
  client.on("error", () => proxy.destroy());
  proxy.on("error", () => client.destroy());
  client.on("close", () => proxy.destroy());
  proxy.on("close", () => client.destroy());
};

const server = createServer({ allowHalfOpen: true }, carry);
server.maxConnections = CONNECTIONS_MAX;
server.on("error", (error) => process.stderr.write(`egress forwarder: ${error.message}\n`));
server.listen(PORT, "127.0.0.1");
// The daemon decides how long the process lives.
server.unref();
