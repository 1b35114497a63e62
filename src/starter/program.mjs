// @ts-check
/**
 * The starter: a small process that starts programs for the service (starter.ts). The kernel copies the page tables of
 * the process that forks, and this one has few. It is plain JavaScript: Node needs twice as long to start TypeScript.
 *
 * 1. For each standard stream it opens one connection to the service, and passes it to the program. It does not read them.
 * 2. A program gets only these streams, and exactly the environment that was asked for.
 * 3. It signals only programs that it has not reaped, so a signal never reaches a reused process id.
 * 4. When its channel to the service closes, it ends itself and its programs, except those that outlive the service.
 *    Signals for the whole group of the service (Ctrl-C, a stop of the unit) do not end it earlier: a service that stops in
 *    order still needs git.
 */
import { spawn } from "node:child_process";
import { closeSync, openSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";

/** @typedef {import("./starter.ts").StartOrder} StartOrder */

const address = process.argv[2] ?? "";
const KILL_AFTER_MS = 2000;

/** @type {Map<number, { child: import("node:child_process").ChildProcess, order: StartOrder }>} */
const running = new Map();

/** @param {import("./starter.ts").Report} message */
const report = (message) => {
  if (process.connected) process.send?.(message, () => undefined);
};

/**
 * @param {number} id
 * @param {NodeJS.Signals} name
 */
const signal = (id, name) => {
  const { child, order } = running.get(id) ?? {};
  if (child?.pid === undefined) return;
  try {
    process.kill(order?.group === "shared" ? child.pid : -child.pid, name);
  } catch {
    // It ended before the signal.
  }
};

const leaveIfDone = () => {
  if (process.connected || running.size > 0) return;
  rmSync(dirname(address), { recursive: true, force: true });
  process.exit();
};

/**
 * @param {number} id
 * @param {number} descriptor
 * @returns {Promise<import("node:net").Socket>}
 */
const open = (id, descriptor) =>
  new Promise((resolve, reject) => {
    const socket = connect(address, () => resolve(socket));
    socket.once("error", reject);
    socket.write(`${id} ${descriptor}`.padEnd(16));
  });

/**
 * The channel stays a pipe of ours and is passed on: a connection would not block, and shells cannot read a non-blocking
 * descriptor. Node makes only descriptors 0 to 2 blocking.
 *
 * @param {import("node:net").Socket | undefined} socket
 * @param {import("node:net").Socket} channel
 */
const relay = (socket, channel) => {
  if (socket === undefined) return;
  socket.on("error", () => channel.destroy()).once("close", () => channel.destroy());
  channel.on("error", () => socket.destroy());
  socket.pipe(channel).pipe(socket);
};

/**
 * Opens the program's files.
 * @param {readonly import("./starter.ts").ProgramFile[]} files
 * @returns {Map<number, number>} by descriptor
 */
const openFiles = (files) => {
  const opened = new Map();
  try {
    for (const { descriptor, path, flags } of files) opened.set(descriptor, openSync(path, flags, 0o600));
  } catch (error) {
    for (const file of opened.values()) closeSync(file);
    throw error;
  }
  return opened;
};

/** @param {unknown} error */
const codeOf = (error) => String(/** @type {NodeJS.ErrnoException} */ (error).code ?? "unknown reason");

/**
 * @param {StartOrder} order
 * @param {(descriptor: number) => import("node:net").Socket | undefined} at
 */
const spawnOrder = ({ program, args, env, cwd, group, user, files }, at) => {
  const opened = openFiles(files ?? []);
  try {
    return spawn(program, args, {
      env,
      cwd,
      stdio: [0, 1, 2, 3, 4].map(
        (descriptor) =>
          opened.get(descriptor) ??
          (at(descriptor) === undefined ? "ignore" : descriptor === 3 ? "pipe" : at(descriptor)),
      ),
      // A process group of its own: its children end with it, and the terminal's Ctrl-C does not reach it.
      detached: group !== "shared",
      ...(user !== undefined && { uid: user, gid: user }),
    });
  } finally {
    for (const file of opened.values()) closeSync(file);
  }
};

/** @param {StartOrder} order */
const start = async (order) => {
  const { id, descriptors } = order;
  const opened = await Promise.allSettled(descriptors.map((descriptor) => open(id, descriptor)));
  const sockets = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  if (!process.connected || sockets.length < descriptors.length) {
    for (const socket of sockets) socket.destroy();
    return report({ id, failed: "no connection" });
  }
  const at = (/** @type {number} */ descriptor) => sockets[descriptors.indexOf(descriptor)];
  /** @type {import("node:child_process").ChildProcess} */
  let child;
  try {
    child = spawnOrder(order, at);
  } catch (error) {
    at(3)?.destroy();
    return report({ id, failed: codeOf(error) });
  } finally {
    // In this same turn: the program has its copies, and ours must not read what the service writes.
    for (const descriptor of [0, 1, 2]) at(descriptor)?.destroy();
  }
  child.once("error", (error) => {
    at(3)?.destroy();
    report({ id, failed: codeOf(error) });
  });
  child.once("spawn", () => {
    running.set(id, { child, order });
    relay(at(3), /** @type {import("node:net").Socket} */ (child.stdio[3]));
    report({ id, pid: child.pid ?? 0 });
  });
  child.once("exit", (code, name) => {
    running.delete(id);
    report({ id, code, signal: name });
    leaveIfDone();
  });
};

process.on("message", (/** @type {import("./starter.ts").Order} */ order) => {
  if ("signal" in order) signal(order.id, order.signal);
  else void start(order);
});

process.once("disconnect", () => {
  for (const [id, { order }] of running) {
    if (order.graceMs === null) {
      running.delete(id);
      continue;
    }
    // oxlint-disable-next-line no-restricted-globals -- a process without effect
    setTimeout(() => {
      signal(id, "SIGTERM");
      // oxlint-disable-next-line no-restricted-globals -- a process without effect
      setTimeout(() => signal(id, "SIGKILL"), KILL_AFTER_MS);
    }, order.graceMs);
  }
  leaveIfDone();
});

for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => undefined);
