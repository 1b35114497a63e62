/**
 * Connects a sandbox that shares no directory with its service. It runs beside the sandbox, where the agent can neither
 * see nor signal it, and shares only /run/platform with the daemon. It has two directions, both over TLS 1.3 with keys
 * that only the service and this program have:
 *
 *  L1 From the service: with the key `start`, once, it takes the other keys and the daemon's launch file. With the key
 *     `link` it connects to the daemon's socket. Without a key, a caller gets no byte. After the start, the key `start`
 *     opens nothing.
 *  L2 To the service: a connection to egress.sock becomes one to the service's egress listener.
 *  L3 egress.sock exists only while the service answers: a connection to it tells the daemon that its service lives
 *     (boot/orphan.ts).
 *  L4 It ends when the daemon has ended, or never started.
 *
 * It is plain JavaScript like forwarder.cjs, and loads nothing but Node's own modules.
 *
 *   node link.cjs RUN_DIRECTORY START_KEY_FILE ADDRESS PORT [LOOK_MS]
 */
"use strict";
const { existsSync, readFileSync, renameSync, rmSync, writeFile, writeFileSync } = require("node:fs");
const { createServer: createHttpServer } = require("node:http");
const { connect: connectPlain, createServer: createPlainServer } = require("node:net");
const { join } = require("node:path");
const { connect: connectTls, createServer: createTlsServer } = require("node:tls");

const [directory = "", keyFile = "", host = "", port = "", lookMs = "15000"] = process.argv.slice(2);
const DAEMON_SOCKET = join(directory, "d.sock");
const EGRESS_SOCKET = join(directory, "proxy", "egress.sock");
const LAUNCH_FILE = join(directory, "launch.json");
const START_PIPE = join(directory, "start");

const SUITE = /** @type {const} */ ({ ciphers: "PSK", minVersion: "TLSv1.3", maxVersion: "TLSv1.3" });
const HANDSHAKE_MS = 10_000;
/** As many as the proxy accepts of one sandbox. */
const EGRESS_CONNECTIONS_MAX = 512;
/** Of the service. The agent can reach this port, too, and use them all up: then its own sandbox cannot be reached. */
const LINK_CONNECTIONS_MAX = 1024;
/** A launch file has a conversation at most. */
const START_BYTES_MAX = 64 * 1024 * 1024;
/** Pause between two looks at the service and the daemon: 15 s, unless a test makes it short. */
const LOOK_MS = Number(lookMs);
/** The service is in the same network, and answers at once. */
const ANSWER_MS = 5_000;
/** A daemon that does not answer so many looks has ended. */
const LOOKS_UNTIL_END = 4;
/** Looks until a sandbox that was never started ends: 10 minutes. */
const LOOKS_UNTIL_START = 40;

/** @type {Buffer | null} */
let startKey = Buffer.from(readFileSync(keyFile, "utf8").trim(), "base64");
/** @type {{ link: Buffer, egress: Buffer, identity: string, host: string, port: number } | null} */
let started = null;

// If the log's reader is gone, the link must not end.
process.stdout.on("error", () => undefined);
/** @param {string} text */
const log = (text) => process.stdout.write(`link: ${text}\n`);

/** @param {import("node:stream").Duplex} from @param {import("node:stream").Duplex} to */
const follow = (from, to) => {
  from.on("error", () => to.destroy());
  from.on("close", () => {
    if (!from.readableEnded) to.destroy();
    // Discard anything that `to` still sends.
    else to.end().resume();
  });
};

/** @param {import("node:stream").Duplex} a @param {import("node:stream").Duplex} b */
const joinStreams = (a, b) => {
  a.pipe(b).pipe(a);
  follow(a, b);
  follow(b, a);
};

/** @param {NonNullable<typeof started>} service */
const dialEgress = ({ egress, identity, ...place }) =>
  connectTls({
    ...SUITE,
    ...place,
    allowHalfOpen: true,
    pskCallback: () => ({ psk: egress, identity }),
    checkServerIdentity: () => undefined,
  });

/**
 * Whether a connection opens in time.
 * @param {import("node:net").Socket} socket @param {string} sign @returns {Promise<string | null>} null, or why not
 */
const opens = (socket, sign) =>
  new Promise((resolve) => {
    /** @param {string | null} answer */
    const told = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(ANSWER_MS, () => told(`no answer within ${ANSWER_MS} ms`));
    socket.once(sign, () => told(null));
    socket.on("error", (error) => told("code" in error ? String(error.code) : error.message));
  });

/** @type {import("node:net").Server | null} */
let egressServer = null;

const openEgress = () => {
  if (egressServer !== null) return;
  const server = createPlainServer({ allowHalfOpen: true }, (client) => {
    if (started === null) client.destroy();
    else joinStreams(client, dialEgress(started));
  });
  server.maxConnections = EGRESS_CONNECTIONS_MAX;
  server.on("error", (error) => log(error.message));
  rmSync(EGRESS_SOCKET, { force: true });
  server.listen(EGRESS_SOCKET);
  egressServer = server;
};

/** Connections that are open stay open. */
const closeEgress = () => {
  egressServer?.close();
  egressServer = null;
};

/** L3. @param {NonNullable<typeof started>} service @returns {Promise<string | null>} null, or why it cannot be reached */
const lookAtService = async (service) => {
  const problem = await opens(dialEgress(service), "secureConnect");
  if (problem === null) openEgress();
  else closeEgress();
  return problem;
};

/** @param {import("node:http").ServerResponse} response @param {number} status @param {object} body */
const answer = (response, status, body) => {
  response.writeHead(status, { "content-type": "application/json", connection: "close" });
  response.end(JSON.stringify(body));
};

/** @param {import("node:http").IncomingMessage} request @returns {Promise<string>} */
const readBody = async (request) => {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > START_BYTES_MAX) throw new Error("too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
};

/** L1. @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
const start = async (request, response) => {
  const { launch, link, egress } = JSON.parse(await readBody(request));
  const service = {
    link: Buffer.from(link, "base64"),
    egress: Buffer.from(egress.key, "base64"),
    identity: String(egress.identity),
    host: String(egress.host),
    port: Number(egress.port),
  };
  const problem = await opens(dialEgress(service), "secureConnect");
  if (problem !== null) return answer(response, 502, { code: "egress_unreachable", error: problem });
  if (startKey === null) return answer(response, 409, { code: "started", error: "it has started" });
  startKey = null;
  started = service;
  openEgress();
  // The daemon finds the whole file or none.
  writeFileSync(`${LAUNCH_FILE}.new`, launch, { mode: 0o600 });
  renameSync(`${LAUNCH_FILE}.new`, LAUNCH_FILE);
  // A shell that waits for the file reads this pipe.
  if (existsSync(START_PIPE)) writeFile(START_PIPE, "go\n", () => undefined);
  log("started");
  answer(response, 200, { started: true });
};

const starts = createHttpServer({ headersTimeout: 10_000, requestTimeout: 60_000 }, (request, response) => {
  if (request.method !== "POST" || request.url !== "/start")
    return answer(response, 404, { code: "not_found", error: "only POST /start" });
  // A parser's message quotes its input, which has keys.
  start(request, response).catch(() => answer(response, 400, { code: "malformed", error: "malformed" }));
});

/** @type {WeakMap<import("node:net").Socket, string>} */
const identities = new WeakMap();

const server = createTlsServer(
  {
    ...SUITE,
    allowHalfOpen: true,
    handshakeTimeout: HANDSHAKE_MS,
    pskCallback: (socket, identity) => {
      identities.set(socket, identity);
      if (identity === "start") return startKey;
      return identity === "link" && started !== null ? started.link : null;
    },
  },
  (caller) => {
    caller.on("error", () => caller.destroy());
    const identity = identities.get(caller);
    if (identity === "link") joinStreams(caller, connectPlain({ path: DAEMON_SOCKET, allowHalfOpen: true }));
    // The key was given up since its handshake began.
    else if (startKey === null) caller.destroy();
    else starts.emit("connection", caller);
  },
);
server.maxConnections = LINK_CONNECTIONS_MAX;
server.on("tlsClientError", (_error, socket) => socket.destroy());
server.on("error", (error) => {
  log(error.message);
  process.exit(1);
});
server.listen({ host, port: Number(port) }, () => log("listening"));

/** Looks without connecting: to the daemon, a connection means that its service lives. @param {string} path */
const listens = (path) => readFileSync("/proc/net/unix", "utf8").includes(` ${path}\n`);

let looksInVain = 0;
let hasDaemon = false;

/** L3, L4 */
const look = async () => {
  if (started !== null) await lookAtService(started);
  const isThere = started !== null && listens(DAEMON_SOCKET);
  hasDaemon ||= isThere;
  looksInVain = isThere ? 0 : looksInVain + 1;
  if (looksInVain >= (hasDaemon ? LOOKS_UNTIL_END : LOOKS_UNTIL_START)) {
    log("the daemon has ended");
    process.exit(0);
  }
  lookLater();
};
// oxlint-disable-next-line no-restricted-globals -- this file is a program of its own, without a test clock
const lookLater = () => setTimeout(look, LOOK_MS);
lookLater();
process.on("SIGTERM", () => process.exit(0));
