/**
 * Runs as the agent of the one sandbox that `doctor` starts in a cluster, and prints what it may do as one line of JSON.
 * src/sandbox/kubernetes/trial.ts passes this text to `node -e`, with the addresses to try as JSON in its last argument.
 */
"use strict";
const { readFileSync, readdirSync, writeFileSync } = require("node:fs");
const { connect } = require("node:net");
const { release } = require("node:os");

/** For one connection. A network policy drops packets, so there is no answer. */
const TRY_MS = 3_000;

/** @param {() => unknown} attempt */
const works = (attempt) => {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
};

/** @param {string} file */
const read = (file) => {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return null;
  }
};

/** @param {{ host: string, port: number }} place @returns {Promise<boolean>} */
const reaches = (place) =>
  new Promise((resolve) => {
    const socket = connect({ ...place, timeout: TRY_MS });
    /** @param {boolean} answer */
    const told = (answer) => () => {
      socket.destroy();
      resolve(answer);
    };
    socket.on("connect", told(true)).on("timeout", told(false));
    socket.on("error", told(false));
  });

/** @param {string} name */
const status = (name) =>
  new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(read("/proc/self/status") ?? "")?.[1] ?? null;

const main = async () => {
  const places = JSON.parse(process.argv[process.argv.length - 1] ?? "[]");
  const reached = [];
  for (const place of places) if (await reaches(place)) reached.push(`${place.host}:${place.port}`);
  const seen = {
    reached,
    kernel: release(),
    capabilities: status("CapEff"),
    noNewPrivileges: status("NoNewPrivs"),
    seccomp: status("Seccomp"),
    processes: readdirSync("/proc").filter((name) => /^\d+$/.test(name)).length,
    writesRoot: works(() => writeFileSync("/platform-doctor", "")),
    writesPlatform: works(() => writeFileSync("/opt/platform/lib/platform-doctor", "")),
    writesWorkspace: works(() => writeFileSync("/workspace/platform-doctor", "")),
    readsDaemon: works(() => readFileSync("/proc/1/environ")),
    readsRun: works(() => readdirSync("/run/platform")),
    readsToken: works(() => readFileSync("/var/run/secrets/kubernetes.io/serviceaccount/token")),
    memoryMax: read("/sys/fs/cgroup/memory.max") ?? read("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    pidsMax: read("/sys/fs/cgroup/pids.max") ?? read("/sys/fs/cgroup/pids/pids.max"),
  };
  process.stdout.write(`platform-doctor ${JSON.stringify(seen)}\n`);
};
main();
// The daemon would start an agent that ended again.
// oxlint-disable-next-line no-restricted-globals -- this file is a program of its own, without a test clock
setInterval(() => undefined, 60_000);
