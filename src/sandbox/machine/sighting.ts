/** What the program of `doctor` saw in a sandbox (daemon/programs/doctor.mjs), and how findings are read from it. */
import * as Schema from "effect/Schema";
import type { DoctorFinding } from "../port.ts";

/** Results of commands that ran as the agent. */
export const Sighting = Schema.Struct({
  status: Schema.String,
  attempts: Schema.String,
  processes: Schema.String,
  interfaces: Schema.String,
  limits: Schema.String,
  /** What `setpriv --dump` prints. */
  privileges: Schema.String,
});
export type Sighting = typeof Sighting.Type;

/** One finding. `by` enforces it where it holds. */
export type Judge = (subject: string, holds: boolean, detail: string) => DoctorFinding;
export const judge =
  (by: "kernel" | "gvisor"): Judge =>
  (subject, holds, detail) => ({ subject, how: holds ? by : "not at all", detail });

/** Whether each of these attempts failed. */
export const isRefused = (sighting: Sighting, ...names: string[]): boolean =>
  names.every((name) => new RegExp(`^${name} no$`, "m").test(sighting.attempts));

const statusField = (sighting: Sighting, name: string): string =>
  new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(sighting.status)?.[1] ?? "unknown";

/** The agent, its shell and the shell's commands. More processes mean that it sees those of others. */
const PROCESSES_SEEN_MAX = 12;

/** What every isolation promises. @param by who enforces it there */
export const commonFindings = (sighting: Sighting, by: Judge): DoctorFinding[] => {
  const interfaces = sighting.interfaces.split("\n").map((line) => line.split(":")[0]?.trim() ?? "");
  const processCount = Number(sighting.processes);
  const powers = statusField(sighting, "CapEff");
  return [
    by(
      "processes of this machine",
      processCount <= PROCESSES_SEEN_MAX,
      `the agent sees ${processCount} processes`,
    ),
    by(
      "network",
      interfaces.filter(Boolean).join() === "lo",
      "loopback only; other traffic goes through the egress proxy",
    ),
    by(
      "read-only root",
      isRefused(sighting, "write_usr", "write_root", "write_sysctl"),
      "/usr, / and /proc/sys",
    ),
    by("no privileges", /^0+$/.test(powers), `the agent's capabilities are ${powers}`),
    by(
      "no new privileges",
      /^no_new_privs: 1$/m.test(sighting.privileges),
      "set-uid programs give no privileges",
    ),
    by(
      "no user namespaces",
      isRefused(sighting, "new_user_namespace", "new_mount_namespace"),
      "the agent cannot create any",
    ),
    by(
      "daemon isolated from the agent",
      isRefused(sighting, "read_launch_file", "read_daemon_environment", "signal_daemon"),
      "the agent cannot read its files or environment, nor signal it",
    ),
  ];
};

/** Whether a seccomp filter covers the agent. */
export const isFiltered = (sighting: Sighting): boolean => statusField(sighting, "Seccomp") === "2";
