/**
 * The checks of `doctor`: starts one real sandbox with a program that tests its isolation, and evaluates the results.
 */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { thrownText } from "../../ground/thrown.ts";
import type { Installation } from "./installation.ts";
import type { MachineOptions } from "./options.ts";
import type { Kind } from "./isolation/isolation.ts";
import { Sighting, commonFindings, judge, isRefused } from "./sighting.ts";
import { openInstallation } from "./boot/trial.ts";
import { mebibytes } from "./limits/watcher.ts";
import { readIfThere } from "./processes.ts";
import { MachineSandboxes } from "./sandboxes.ts";
import { BARE_SPEC, type DoctorFinding, type DoctorReport } from "../port.ts";
import { sandboxPaths } from "./disk/run-directory.ts";

/** Time limit for the sandbox to start, run its checks and end, in milliseconds. */
const PATIENCE_MS = 30_000;

const PROBE = fileURLToPath(new URL("../../../daemon/programs/doctor.mjs", import.meta.url));

const decodeSighting = Schema.decodeUnknownSync(Schema.fromJsonString(Sighting));

/** Where gVisor bounds processes itself, control groups bound those that it is made of. */
const processFinding = (
  { options: { limits }, isolation, controls }: Installation,
  isLimited: boolean,
): DoctorFinding => {
  const subject = "processes";
  if (isolation.enforcer === "gvisor") {
    const outside = isolation.hostProcesses(limits.processes);
    const detail = `${limits.processes} for each user of a sandbox; the kernel allows gVisor ${outside} of its own`;
    return judge("gvisor")(subject, isLimited, detail);
  }
  const isHeld = controls.has("processes") || isLimited;
  return { subject, how: isHeld ? "kernel" : "watcher", detail: `${limits.processes} for each sandbox` };
};

const limitFindings = (installation: Installation, sighting: Sighting): DoctorFinding[] => {
  const { controls } = installation;
  const { limits } = installation.options;
  const isLimited = (name: string, value: number): boolean =>
    new RegExp(`^${name}\\s+${value}\\s`, "m").test(sighting.limits);
  return [
    {
      subject: "memory",
      how: controls.has("memory") ? "kernel" : "watcher",
      detail: `${mebibytes(limits.memoryBytes)} for each sandbox`,
    },
    processFinding(installation, isLimited("Max processes", limits.processes)),
    judge(installation.isolation.enforcer)(
      "open files",
      isLimited("Max open files", limits.openFiles),
      `${limits.openFiles} for each process`,
    ),
    {
      subject: "processor time",
      how: controls.has("cpu") ? "kernel" : "not at all",
      detail: controls.has("cpu")
        ? `${limits.cpus} ${limits.cpus === 1 ? "processor" : "processors"} for each sandbox`
        : "sandboxes share the processors with each other and with the service: this machine offers no control group for them",
    },
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

const setting = (path: string): string => readIfThere(path)?.trim() ?? "";

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

/** A container engine needs no user namespaces. */
const adviseOn = (kinds: readonly Kind[], problem: string): string =>
  kinds.every(({ name }) => name === "docker") ? problem : advise(problem);

const within = <A>(operation: Promise<A>, milliseconds: number): Promise<A> => {
  const { promise, reject } = Promise.withResolvers<never>();
  const timeout = AbortSignal.timeout(milliseconds);
  timeout.addEventListener("abort", () =>
    reject(new Error("the sandbox started but did not finish its checks")),
  );
  return Promise.race([operation, promise]);
};

const examine = async (options: MachineOptions, kinds: readonly Kind[]): Promise<DoctorReport> => {
  // A separate owner, so that a running service's sandboxes are not touched.
  const own = {
    ...options,
    installationId: `doctor-${process.pid}`,
    daemonBundle: PROBE,
    daemonCodeCache: null,
  };
  const { installation, refusals } = await openInstallation(own, kinds);
  const { isolation } = installation;
  const sandboxes = await MachineSandboxes.open(installation);
  const id = randomUUID();
  try {
    await sandboxes.create({
      ...BARE_SPEC,
      id,
      sessionId: id,
      environment: { DOCTOR_MARK: "1" },
      // The doctor's program takes the daemon's place, so nothing starts it.
      runtime: { adapter: "plain", command: ["true"], variables: {}, permissions: null },
      bootDeadlineMs: PATIENCE_MS,
    });
    await within(sandboxes.awaitExit(id), PATIENCE_MS);
    const { agentReadable } = sandboxPaths(options.runDir, id);
    const report = await readFile(join(agentReadable, "report.json"), "utf8").catch(() => null);
    if (report === null) throw new Error(`the checks in the sandbox failed: ${await sandboxes.logs(id)}`);
    const sighting = decodeSighting(report);
    if (isRefused(sighting, "write_workspace") || isRefused(sighting, "write_home")) {
      throw new Error("the agent cannot write its workspace or its home");
    }
    return {
      provider: `${isolation.provider} (${isolation.form})`,
      usable: true,
      problem: null,
      findings: [
        ...commonFindings(sighting, judge(isolation.enforcer)),
        ...isolation.findings(sighting),
        ...limitFindings(installation, sighting),
        ...refusals.map((refusal) => ({
          subject: "stronger isolation",
          how: "not at all" as const,
          detail: `not used: ${refusal}`,
        })),
      ],
    };
  } finally {
    await sandboxes.destroy(id);
    sandboxes.close();
  }
};

/**
 * Starts one real sandbox, runs the checks in it, and destroys it. A failure is part of the report.
 * @param kinds of isolation to try, strongest first
 */
export const doctorReport = (options: MachineOptions, kinds: readonly Kind[]): Effect.Effect<DoctorReport> =>
  Effect.tryPromise(() => examine(options, kinds)).pipe(
    Effect.catch((error) =>
      Effect.succeed({
        provider: kinds.map(({ name }) => name).join(" or "),
        usable: false,
        problem: adviseOn(kinds, thrownText(error.cause)),
        findings: [],
      }),
    ),
  );
