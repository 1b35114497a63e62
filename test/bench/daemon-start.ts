/**
 * `npm run bench:daemon-start [-- --starts 50]`: from starting the daemon's process to its first health answer, in the
 * forms a sandbox could start it in, beside `node -e 0`, one start of each after the other. Prints medians and what they
 * are over the bare Node; the last line is one JSON object. It measures and judges nothing.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { bundleDaemon } from "../../daemon/bundle/bundle.ts";
import { writeCodeCache } from "../../daemon/bundle/code-cache.ts";
import type { Layout } from "../../daemon/settings.ts";
import { guardedDirectory } from "../support/machine/guard.ts";

const given = process.argv.indexOf("--starts");
const STARTS = given === -1 ? 50 : Number(process.argv[given + 1]);
/** The aim over the bare Node, ms. */
const AIM_MS = 60;
const IN_DAEMON = fileURLToPath(new URL("../../daemon/programs/", import.meta.url));
const ENTRY = fileURLToPath(new URL("daemon-start/entry.ts", import.meta.url));

const { directory, remove } = guardedDirectory("platform-bench-");
const bundle = path.join(directory, "platform-agent");
const launcher = path.join(directory, "launcher.cjs");
const forwarder = path.join(IN_DAEMON, "forwarder.cjs");
const nodeCache = path.join(directory, "node-compile-cache");

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const ended = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
};

/** A layout of its own, and what the daemon reads in it. */
const makeLayout = (): Layout => {
  const root = mkdtempSync(path.join(directory, "daemon-"));
  const at = (name: string): string => path.join(root, name);
  mkdirSync(at("workspace"));
  const launch = {
    prefix: [],
    agentCommand: ["sleep", "60"],
    adapter: "opencode",
    agentEnv: {},
    commonEnv: { PATH: process.env["PATH"] ?? "" },
    bootDeadlineMs: 60_000,
  };
  writeFileSync(at("launch.json"), JSON.stringify(launch));
  return {
    serviceHost: "127.0.0.1",
    launchFile: at("launch.json"),
    socket: at("d.sock"),
    workspace: at("workspace"),
    credentialFile: at("git-credential"),
    rejectionPipe: at("git-credential-refused"),
    gitConfigFile: at("gitconfig"),
    runtimeDefaultsFile: at("runtime-defaults.json"),
    attachmentsDir: at("attachments"),
    sessionEnvironment: at("session-environment"),
    npmConfigFile: at("npmrc"),
    configDirectory: at("config"),
    runtimePort: 1,
  };
};

const environment = (layout: Layout): Record<string, string> => ({
  DAEMON_LAYOUT: JSON.stringify(layout),
  PLATFORM_TOKEN: "bench",
  PLATFORM_PROJECT_ID: "bench",
  PLATFORM_SESSION_ID: "bench",
  PLATFORM_BRANCH_NAME: "bench",
  PLATFORM_DEFAULT_BRANCH: "main",
  PLATFORM_REPO_URL: "http://127.0.0.1:1/",
  PLATFORM_API_URL: "http://127.0.0.1:1/v1",
  PLATFORM_SERVICE_PORT: "0",
  PLATFORM_AGENT_NAME: "default",
});

const answers = async (socketPath: string): Promise<boolean> => {
  try {
    const call = request({ socketPath, path: "/platform/health", agent: false }).end();
    const [answer] = (await once(call, "response")) as [IncomingMessage];
    answer.resume();
    return answer.statusCode === 200;
  } catch {
    return false;
  }
};

/** Asks without a pause: the first answer is timed to a fraction of a millisecond. */
const untilHealthy = async (socketPath: string): Promise<void> => {
  while (!(await answers(socketPath))) await new Promise((resolve) => setTimeout(resolve, 0));
};

/** Milliseconds from `spawn` to health; SIGTERM lets Node write its own compile cache, where that is tried. */
const startDaemon = async (args: readonly string[], env: Record<string, string> = {}): Promise<number> => {
  const layout = makeLayout();
  const started = performance.now();
  const child = spawn(process.execPath, args, {
    // The guard finds it by this.
    cwd: directory,
    stdio: "ignore",
    env: { ...environment(layout), ...env },
  });
  await untilHealthy(layout.socket);
  const took = performance.now() - started;
  child.kill();
  await ended(child);
  return took;
};

const startBare = async (): Promise<number> => {
  const started = performance.now();
  await ended(spawn(process.execPath, ["-e", "0"], { stdio: "ignore" }));
  return performance.now() - started;
};

const FORMS: Readonly<Record<string, () => Promise<number>>> = {
  "node -e 0": startBare,
  "one bundled file": () => startDaemon(["--require", forwarder, bundle]),
  "with Node's compile cache": () =>
    startDaemon(["--require", forwarder, bundle], { NODE_COMPILE_CACHE: nodeCache }),
  "from our code cache": () => startDaemon(["--require", forwarder, launcher, bundle]),
};

try {
  await bundleDaemon(bundle, ENTRY);
  copyFileSync(path.join(IN_DAEMON, "launcher.cjs"), launcher);
  await writeCodeCache(process.execPath, bundle, `${bundle}.cache`);
  const took = new Map(Object.keys(FORMS).map((form) => [form, [] as number[]]));
  for (const form of Object.values(FORMS)) await form();
  for (let round = 0; round < STARTS; round += 1) {
    for (const [form, start] of Object.entries(FORMS)) took.get(form)?.push(await start());
  }
  const bare = median(took.get("node -e 0") ?? []);
  const rows = [...took].map(([form, values]) => ({
    form,
    ms: Math.round(median(values) * 10) / 10,
    over_bare_ms: Math.round((median(values) - bare) * 10) / 10,
  }));
  for (const { form, ms, over_bare_ms: over } of rows) {
    process.stdout.write(`${form.padEnd(28)} ${ms.toFixed(1).padStart(7)} ms   ${over.toFixed(1)} ms over\n`);
  }
  process.stdout.write(`aim: at most ${AIM_MS} ms over node -e 0\n`);
  process.stdout.write(
    `${JSON.stringify({ bench: "daemon-start", starts: STARTS, aim_over_ms: AIM_MS, rows })}\n`,
  );
} finally {
  remove();
}
