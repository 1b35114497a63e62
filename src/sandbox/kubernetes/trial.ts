/** The sandbox that `doctor` starts in a cluster: whether it starts, reaches the service, and what its agent may do. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as Schema from "effect/Schema";
import { poll } from "../../ground/poll.ts";
import type { ChannelPlace } from "../remote/channel.ts";
import { BARE_SPEC, type DoctorFinding, type SandboxSpec } from "../port.ts";
import { BUNDLE_LIBRARY } from "../bundle/bundle.ts";
import type { LaunchOptions } from "../launch-settings.ts";
import { launchText } from "./launch.ts";
import type { PodLimits } from "./pod.ts";
import { KubernetesSandboxes, type SandboxesOptions } from "./sandboxes.ts";

/** For the start, in milliseconds. With the probe it is within the time that the dashboard waits for the report. */
const START_MS = 90_000;
/** For the daemon and the probe, after the start, in milliseconds. */
const PROBE_MS = 30_000;
const LOOK_MS = 500;

const PROBE = fileURLToPath(new URL("../../../daemon/programs/cluster-probe.cjs", import.meta.url));

/** What the probe prints (daemon/programs/cluster-probe.cjs). */
const Sighting = Schema.Struct({
  reached: Schema.Array(Schema.String),
  kernel: Schema.String,
  capabilities: Schema.NullOr(Schema.String),
  noNewPrivileges: Schema.NullOr(Schema.String),
  seccomp: Schema.NullOr(Schema.String),
  processes: Schema.Finite,
  writesRoot: Schema.Boolean,
  writesPlatform: Schema.Boolean,
  writesWorkspace: Schema.Boolean,
  readsDaemon: Schema.Boolean,
  readsRun: Schema.Boolean,
  readsToken: Schema.Boolean,
  memoryMax: Schema.NullOr(Schema.String),
  pidsMax: Schema.NullOr(Schema.String),
});
export type Sighting = typeof Sighting.Type;

const MARK = "platform-doctor ";
const decodeSighting = Schema.decodeUnknownSync(Schema.fromJsonString(Sighting));
/** A line of the daemon's log with a line of the agent's output. */
const decodeOutput = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ event: Schema.Literal("output"), line: Schema.String })),
);

/** Null if the probe has not printed it yet. */
const sightingIn = (log: string): Sighting | null => {
  for (const text of log.split("\n")) {
    const output = decodeOutput(text);
    if (output._tag === "Some" && output.value.line.startsWith(MARK))
      return decodeSighting(output.value.line.slice(MARK.length));
  }
  return null;
};

/** The daemon starts without a clone, because the sandbox has no project. */
export const trialSpec = (id: string, places: readonly ChannelPlace[]): SandboxSpec => ({
  ...BARE_SPEC,
  id,
  sessionId: id,
  environment: {
    // It opens nothing. The daemon cuts it out of its log.
    PLATFORM_TOKEN: randomUUID(),
    PLATFORM_SERVICE_PORT: "8000",
    PLATFORM_PROJECT_ID: id,
    PLATFORM_SESSION_ID: id,
    PLATFORM_BRANCH_NAME: id,
    PLATFORM_DEFAULT_BRANCH: "main",
    PLATFORM_REPO_URL: "http://platform.internal/doctor.git",
    PLATFORM_API_URL: "http://platform.internal",
    PLATFORM_AGENT_NAME: "default",
  },
  runtime: {
    adapter: "plain",
    command: [`${BUNDLE_LIBRARY}/node`, "-e", readFileSync(PROBE, "utf8"), JSON.stringify(places)],
    variables: {},
    permissions: null,
  },
  bootDeadlineMs: START_MS,
});

const LAUNCH: LaunchOptions = {
  orphanMs: START_MS + PROBE_MS,
  setupTimeoutMs: PROBE_MS,
};

/** The owner of trial sandboxes in their labels, so that no service takes them over. */
const DOCTOR = "doctor";

/**
 * Starts one sandbox, lets it look around, and removes it. If this process is killed, the sandbox ends itself after a few
 * minutes, and the next trial removes its Pod.
 * @param places that the sandbox must not reach
 * @throws Error that says what failed
 */
export const trySandbox = async (
  options: Omit<SandboxesOptions, "launchText">,
  places: readonly ChannelPlace[],
): Promise<Sighting> => {
  const id = randomUUID();
  const own = { ...options, installationId: DOCTOR, nodeId: DOCTOR, launchText: launchText(LAUNCH) };
  const sandboxes = await KubernetesSandboxes.open(own, () => undefined);
  try {
    const exitedSandboxes = (await sandboxes.list()).filter(({ state }) => state === "exited");
    await Promise.all(exitedSandboxes.map((former) => sandboxes.destroy(former.id)));
    await sandboxes.create(trialSpec(id, places));
    return await readSighting(sandboxes, id);
  } finally {
    await sandboxes.destroy(id).finally(() => sandboxes.close());
  }
};

const readSighting = async (sandboxes: KubernetesSandboxes, id: string): Promise<Sighting> => {
  let text = "";
  const look = async () => {
    text = await sandboxes.logs(id);
    return sightingIn(text);
  };
  const sighting = await poll(look, { everyMs: LOOK_MS, withinMs: PROBE_MS });
  if (sighting !== null) return sighting;
  throw new Error(
    `the sandbox started, but its checks did not end within ${PROBE_MS / 1000} s: ${text.slice(-2_000)}`,
  );
};

const isBounded = (value: string | null): boolean =>
  value !== null && /^\d+$/.test(value) && Number(value) < 2 ** 60;

const by = (subject: string, holds: boolean, detail: string): DoctorFinding => ({
  subject,
  how: holds ? "cluster" : "not at all",
  detail,
});

/** What holds in the sandbox. */
export const sightingFindings = (
  sighting: Sighting,
  { limits, runtimeClass }: { readonly limits: PodLimits; readonly runtimeClass: string | null },
): DoctorFinding[] => {
  const memory = `${Math.round(limits.memoryBytes / 1024 ** 2)} MiB for each sandbox`;
  return [
    by(
      "network",
      sighting.reached.length === 0,
      sighting.reached.length === 0
        ? "the sandbox reached the service's egress listener, and not the API server"
        : `the sandbox reached ${sighting.reached.join(", ")}`,
    ),
    by(
      "kernel",
      runtimeClass !== null,
      `the agent sees ${sighting.kernel}; runtime class: ${runtimeClass ?? "the cluster's default"}`,
    ),
    by(
      "read-only root",
      !sighting.writesRoot && !sighting.writesPlatform && sighting.writesWorkspace,
      "only the workspace, the home and /tmp can be written",
    ),
    by(
      "no privileges",
      /^0+$/.test(sighting.capabilities ?? ""),
      `the agent's capabilities are ${sighting.capabilities ?? "unknown"}`,
    ),
    by("no new privileges", sighting.noNewPrivileges === "1", "set-uid programs give no privileges"),
    by("system calls", sighting.seccomp === "2", "the container runtime's own filter"),
    by(
      "daemon isolated from the agent",
      !sighting.readsDaemon && !sighting.readsRun,
      "the agent cannot read its files or environment",
    ),
    by("no token of the cluster", !sighting.readsToken, "the Pod has no service account token"),
    by("memory", isBounded(sighting.memoryMax), memory),
    by(
      "processes",
      isBounded(sighting.pidsMax),
      isBounded(sighting.pidsMax)
        ? `${sighting.pidsMax} for each Pod (the kubelet's podPidsLimit)`
        : "set podPidsLimit in the kubelet's configuration",
    ),
  ];
};
