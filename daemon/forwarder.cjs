/**
 * Carries what the sandbox sends to 127.0.0.1:3128 to the service's egress proxy, byte for byte (api.md 8). The
 * sandbox's network namespace holds nothing but loopback, so this is its only way out; what may pass is decided at
 * the other end, outside the sandbox. Loaded into the daemon's process by the entrypoint (`node --require`), before
 * the daemon itself; plain JavaScript, so that nothing has to be built or parsed twice when a sandbox boots, and
 * CommonJS, since the first module costs a start about 4 ms.
 */
"use strict";
const { createConnection, createServer } = require("node:net");

const PORT = 3128;
/** The directory is bound, not the socket in it: a restarted service makes a new socket there. */
const PROXY_SOCKET = "/run/platform/proxy/egress.sock";
/** Connections beyond these are closed at once, as the proxy does. */
const CONNECTIONS_MAX = 512;

/** @param {import("node:net").Socket} client */
const carry = (client) => {
  const proxy = createConnection({ path: PROXY_SOCKET, allowHalfOpen: true });
  client.pipe(proxy).pipe(client);
  follow(client, proxy);
  follow(proxy, client);
};

/**
 * Ends `to` with `from`: at once where `from` broke off, after what was already read where it came to its end.
 * @param {import("node:net").Socket} from @param {import("node:net").Socket} to
 */
const follow = (from, to) => {
  from.on("error", () => to.destroy());
  from.on("close", () => {
    if (!from.readableEnded) to.destroy();
    // Nobody reads what `to` still sends: let it run out.
    else to.end().resume();
  });
};

const server = createServer({ allowHalfOpen: true }, carry);
server.maxConnections = CONNECTIONS_MAX;
server.on("error", (error) => process.stderr.write(`egress forwarder: ${error.message}\n`));
server.listen(PORT, "127.0.0.1");
// The daemon decides how long the process lives.
server.unref();
