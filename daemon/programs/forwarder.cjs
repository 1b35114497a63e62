/**
 * Forwards connections to 127.0.0.1:3128 in the sandbox to the service's egress proxy, byte for byte (api.md 8). The
 * sandbox's network namespace has only loopback, so this is its only way out. The proxy, outside the sandbox, decides
 * what may pass. The entrypoint loads this file into the daemon's process (`node --require`), before the daemon itself.
 * It is plain JavaScript, so that nothing is built or parsed twice when a sandbox boots, and CommonJS, because the first
 * module costs a start about 4 ms.
 */
"use strict";
const { channel } = require("node:diagnostics_channel");
const { createConnection, createServer } = require("node:net");

const PORT = 3128;
/** The directory is mounted, not the socket in it, because a restarted service creates a new socket there. */
const PROXY_SOCKET = "/run/platform/proxy/egress.sock";
/** Further connections are closed at once, as by the proxy. */
const CONNECTIONS_MAX = 512;
/** The daemon may look at what passes (agent/gateway-calls.ts). */
const carried = channel("platform.egress");

/** @param {import("node:net").Socket} client */
const carry = (client) => {
  const proxy = createConnection({ path: PROXY_SOCKET, allowHalfOpen: true });
  carried.publish({ client, proxy });
  client.pipe(proxy).pipe(client);
  follow(client, proxy);
  follow(proxy, client);
};

/**
 * Closes `to` after `from`: at once if `from` broke off, after the remaining data if it ended normally.
 * @param {import("node:net").Socket} from @param {import("node:net").Socket} to
 */
const follow = (from, to) => {
  from.on("error", () => to.destroy());
  from.on("close", () => {
    if (!from.readableEnded) to.destroy();
    // Discard anything that `to` still sends.
    else to.end().resume();
  });
};

const server = createServer({ allowHalfOpen: true }, carry);
server.maxConnections = CONNECTIONS_MAX;
server.on("error", (error) => process.stderr.write(`egress forwarder: ${error.message}\n`));
server.listen(PORT, "127.0.0.1");
// The daemon decides how long the process lives.
server.unref();
