/** A provider of this machine as the conformance suite's subject, and how its cases talk to the stand-in daemon inside. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import {
  DEFAULT_LIMITS,
  type SandboxLimits,
  type MachineOptions,
} from "../../../src/sandbox/machine/options.ts";
import { dockerKind } from "../../../src/sandbox/docker/docker.ts";
import { gvisorKind } from "../../../src/sandbox/gvisor/gvisor.ts";
import { localKinds } from "../../../src/sandbox/local/local.ts";
import type { Kind } from "../../../src/sandbox/machine/isolation/isolation.ts";
import { machineProvider } from "../../../src/sandbox/machine/provider.ts";
import { type OpenedInstallation, openInstallation } from "../../../src/sandbox/machine/boot/trial.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { processesOfSandbox } from "../../support/machine/processes-seeing.ts";
import type { Subject } from "../../conformance/sandboxes/sandbox.ts";

/** What the test process hands to the child that runs the cases. */
export interface MachineSetup {
  readonly runDir: string;
  readonly nodePath: string;
  readonly daemon: string;
  readonly form: "bubblewrap" | "namespaces" | "gvisor" | "docker";
  /** gVisor's program. Null where no case needs it. */
  readonly runsc: string | null;
  /** The engine of `docker`: its socket. Empty where no case needs it. */
  readonly socket: string;
  /** Its runtime. Null: its own. */
  readonly runtime?: string | null;
  readonly path: string;
  /** The image of all sandboxes, in `imagesDir`. Null: they see the machine's root. */
  readonly image: string | null;
  readonly imagesDir: string;
  /** Descriptors that the process was started with on purpose: no sandbox may have them. */
  readonly planted: readonly number[];
}

export const machineOptions = (
  setup: MachineSetup,
  serviceUrl: string,
  limits: Partial<SandboxLimits> = {},
): MachineOptions => ({
  imagesDir: setup.imagesDir,
  runtimesDir: `${setup.imagesDir}/runtimes`,
  runDir: setup.runDir,
  installationId: "0e6f1c52-conformance",
  nodeId: "node-1",
  nodePath: setup.nodePath,
  daemonBundle: setup.daemon,
  daemonCodeCache: null,
  // Any file: no case here runs it.
  commandLine: setup.daemon,
  agentBinaries: [],
  orphanMs: 86_400_000,
  setupTimeoutMs: 600_000,
  limits: { ...DEFAULT_LIMITS, ...limits },
  serviceUrl,
  path: setup.path,
});

const kinds = ({ form, runsc, socket, runtime = null }: MachineSetup): readonly Kind[] => {
  if (form === "docker") return [dockerKind({ socket, runtime })];
  return form === "gvisor" ? [gvisorKind(runsc)] : localKinds(form);
};

export const providerOf = (setup: MachineSetup, options: MachineOptions) =>
  machineProvider(options, kinds(setup));

export const installationOf = async (
  setup: MachineSetup,
  options: MachineOptions,
): Promise<OpenedInstallation["installation"]> =>
  (await openInstallation(options, kinds(setup))).installation;

/** One request to the stand-in daemon. */
const call = (socketPath: string, path: string, body?: unknown): Promise<string> => {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const outgoing = request({ socketPath, path, method: body === undefined ? "GET" : "POST" }, (incoming) => {
    let text = "";
    incoming.on("data", (chunk: Buffer) => (text += chunk.toString()));
    incoming.on("end", () => resolve(text));
    incoming.on("error", reject);
  });
  outgoing.on("error", reject);
  outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  return promise;
};

/** Asks the stand-in daemon of a sandbox, waiting for it to listen. */
export const ask = Effect.fnUntraced(function* (id: string, path: string, body?: unknown) {
  const provider = yield* SandboxProvider;
  const link = yield* provider.link(id);
  assert.ok(link.kind === "unix");
  const ready = Effect.tryPromise(() => call(link.path, "/platform/health"));
  yield* Effect.retry(ready, { schedule: Schedule.spaced("10 millis"), times: 2000 });
  return yield* Effect.tryPromise(() => call(link.path, path, body));
});

export interface Ran {
  /** Exit code, or the name of the signal. */
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly pid: number;
}

/** Runs a shell script in a sandbox. */
export const runIn = (id: string, as: "agent" | "daemon", script: string) =>
  Effect.map(ask(id, "/run", { as, argv: ["sh", "-c", script] }), (text) => JSON.parse(text) as Ran);

const groupsOf = (id: string): string[] => {
  const { status, stdout } = spawnSync("find", ["/sys/fs/cgroup", "-name", id], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  // 1 where another sandbox's group went while find was about to look into it; it goes on past that.
  assert.ok(status === 0 || status === 1, `find ended with ${status}`);
  return stdout.split("\n").filter(Boolean);
};

export const machineSubject = (setup: MachineSetup, serviceUrl: string): Subject => ({
  layer: providerOf(setup, machineOptions(setup, serviceUrl)),
  // The daemon ends while it answers, so the answer may not come.
  end: (id) => Effect.ignore(ask(id, "/exit/7")),
  leftovers: (id) =>
    Effect.sync(() => [
      ...processesOfSandbox(id).map((pid) => `process ${pid}`),
      ...groupsOf(id),
      ...(existsSync(join(setup.runDir, "s", id)) ? [`directory of ${id}`] : []),
      ...(readFileSync("/proc/self/mountinfo", "utf8").includes(id) ? [`mount of ${id}`] : []),
    ]),
  image: setup.image,
  persistent: true,
});
