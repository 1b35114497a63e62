/**
 * The checks of `doctor`: starts one real sandbox with a program that tests its isolation, and evaluates the results.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { groupControls } from "./cgroup.ts";
import type { Installation, LocalOptions } from "./installation.ts";
import { openInstallation } from "./form.ts";
import { LocalSandboxes } from "./sandboxes.ts";
import type { DoctorFinding, DoctorReport } from "../port.ts";
import { sandboxPaths } from "./run-directory.ts";

/** Time limit for the sandbox to start, run its checks and end, in milliseconds. */
const PATIENCE_MS = 30_000;

const PROBE = fileURLToPath(new URL("../../../daemon/doctor.mjs", import.meta.url));

/** The output of daemon/doctor.mjs: results of commands that ran as the agent. */
const Sighting = Schema.Struct({
  status: Schema.String,
  attempts: Schema.String,
  processes: Schema.String,
  interfaces: Schema.String,
  limits: Schema.String,
});
type Sighting = typeof Sighting.Type;
const decodeSighting = Schema.decodeUnknownSync(Schema.fromJsonString(Sighting));

const kernel = (subject: string, holds: boolean, detail: string): DoctorFinding => ({
  subject,
  how: holds ? "kernel" : "not at all",
  detail,
});

const refused = (sighting: Sighting, ...names: string[]): boolean =>
  names.every((name) => new RegExp(`^${name} no$`, "m").test(sighting.attempts));

const statusField = (sighting: Sighting, name: string): string =>
  new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(sighting.status)?.[1] ?? "unknown";

/** The agent, its shell and the shell's commands. More processes mean that it sees those of others. */
const PROCESSES_SEEN_MAX = 12;

const isolation = (sighting: Sighting): DoctorFinding[] => {
  const interfaces = sighting.interfaces.split("\n").map((line) => line.split(":")[0]?.trim() ?? "");
  const seen = Number(sighting.processes);
  const powers = statusField(sighting, "CapEff");
  const filter = statusField(sighting, "Seccomp") === "2";
  return [
    kernel("processes of this machine", seen <= PROCESSES_SEEN_MAX, `the agent sees ${seen} processes`),
    kernel(
      "network",
      interfaces.filter(Boolean).join() === "lo",
      "loopback only; other traffic goes through the egress proxy",
    ),
    kernel(
      "read-only root",
      refused(sighting, "write_usr", "write_root", "write_sysctl"),
      "/usr, / and /proc/sys",
    ),
    kernel("no privileges", /^0+$/.test(powers), `the agent's capabilities are ${powers}`),
    kernel(
      "no new privileges",
      statusField(sighting, "NoNewPrivs") === "1",
      "set-uid programs give no privileges",
    ),
    kernel(
      "no user namespaces",
      refused(sighting, "new_user_namespace", "new_mount_namespace"),
      "the agent cannot create any",
    ),
    kernel(
      "system calls",
      filter,
      filter ? "a seccomp filter" : "no filter in this form on this processor; install bubblewrap",
    ),
    kernel(
      "daemon isolated from the agent",
      refused(sighting, "read_launch_file", "read_daemon_environment", "signal_daemon"),
      "the agent cannot read its files or environment, nor signal it",
    ),
  ];
};

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;

const limitFindings = (installation: Installation, sighting: Sighting): DoctorFinding[] => {
  const { limits } = installation.options;
  const controls = groupControls(installation.groupParents);
  const limited = (name: string, value: number): boolean =>
    new RegExp(`^${name}\\s+${value}\\s`, "m").test(sighting.limits);
  const processes = controls.has("processes") || limited("Max processes", limits.processes);
  return [
    {
      subject: "memory",
      how: controls.has("memory") ? "kernel" : "watcher",
      detail: `${mebibytes(limits.memoryBytes)} for each sandbox`,
    },
    {
      subject: "processes",
      how: processes ? "kernel" : "watcher",
      detail: `${limits.processes} for each sandbox`,
    },
    kernel("open files", limited("Max open files", limits.openFiles), `${limits.openFiles} for each process`),
    {
      subject: "disk",
      how: "watcher",
      detail: `${mebibytes(limits.diskBytes)} and ${limits.diskFiles} files for workspace, home and /tmp; deleted files that are still open are not counted`,
    },
    {
      subject: "logs",
      how: "watcher",
      detail: `${mebibytes(limits.logBytesPerSecond)} per second; the newest output is kept`,
    },
  ];
};

/** The profile that lets Ubuntu 23.10 and later start bubblewrap as an ordinary user. */
const APPARMOR_FIX = `write this to /etc/apparmor.d/bwrap and run "sudo apparmor_parser -r /etc/apparmor.d/bwrap":
abi <abi/4.0>,
include <tunables/global>
profile bwrap /usr/bin/bwrap flags=(unconfined) {
  userns,
}`;

const setting = (path: string): string => {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
};

/** Adds a remedy, if this machine's settings show the cause. */
const advise = (problem: string): string => {
  if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return `${problem}. AppArmor forbids user namespaces here: ${APPARMOR_FIX}`;
  }
  if (setting("/proc/sys/kernel/unprivileged_userns_clone") === "0") {
    return `${problem}. User namespaces are off here: sudo sysctl kernel.unprivileged_userns_clone=1`;
  }
  if (setting("/proc/sys/user/max_user_namespaces") === "0") {
    return `${problem}. User namespaces are off here: sudo sysctl user.max_user_namespaces=10000`;
  }
  return problem;
};

const within = <A>(operation: Promise<A>, milliseconds: number): Promise<A> => {
  const { promise, reject } = Promise.withResolvers<never>();
  const timeout = AbortSignal.timeout(milliseconds);
  timeout.addEventListener("abort", () =>
    reject(new Error("the sandbox started but did not finish its checks")),
  );
  return Promise.race([operation, promise]);
};

const examine = async (options: LocalOptions): Promise<DoctorReport> => {
  // A separate owner, so that a running service's sandboxes are not touched.
  const own = {
    ...options,
    installationId: `doctor-${process.pid}`,
    daemonBundle: PROBE,
    daemonCodeCache: null,
  };
  const installation = await openInstallation(own);
  const sandboxes = await LocalSandboxes.open(installation);
  const id = randomUUID();
  try {
    await sandboxes.create({
      id,
      sessionId: id,
      environment: { DOCTOR_MARK: "1" },
      secrets: {},
      image: null,
      egressAllow: [],
      llmUpstream: null,
      wip: null,
      recap: null,
      hasConnectors: false,
      bootDeadlineMs: PATIENCE_MS,
    });
    await within(sandboxes.exitOf(id), PATIENCE_MS);
    const { agentReadable } = sandboxPaths(options.runDir, id);
    const report = await readFile(join(agentReadable, "report.json"), "utf8").catch(() => null);
    if (report === null) throw new Error(`the checks in the sandbox failed: ${await sandboxes.logs(id)}`);
    const sighting = decodeSighting(report);
    if (refused(sighting, "write_workspace") || refused(sighting, "write_home")) {
      throw new Error("the agent cannot write its workspace or its home");
    }
    return {
      provider: `local (${installation.form})`,
      usable: true,
      problem: null,
      findings: [...isolation(sighting), ...limitFindings(installation, sighting)],
    };
  } finally {
    await sandboxes.destroy(id);
    sandboxes.close();
  }
};

/** Starts one real sandbox, runs the checks in it, and destroys it. A failure is part of the report. */
export const doctorReport = (options: LocalOptions): Effect.Effect<DoctorReport> =>
  Effect.tryPromise(() => examine(options)).pipe(
    Effect.catch((error) =>
      Effect.succeed({
        provider: "local",
        usable: false,
        problem: advise(error.cause instanceof Error ? error.cause.message : String(error.cause)),
        findings: [],
      }),
    ),
  );
