/**
 * Replaces the daemon in the one sandbox that `doctor` starts. It runs its checks as itself and as the agent, writes
 * the results where the host can read them, and ends. src/sandbox/machine/sighting.ts evaluates them.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const settings = JSON.parse(readFileSync("/run/platform/launch.json", "utf8"));

/**
 * Attempts that must fail for an agent. Each prints a name and whether it succeeded. The daemon is found by its
 * environment (DOCTOR_MARK is in ours) and its command, since pids differ between namespaces.
 */
const ATTEMPTS = `
attempt() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name yes"; else echo "$name no"; fi; }
attempt new_user_namespace unshare --user true
attempt new_mount_namespace unshare --mount true
attempt write_usr touch /usr/platform-doctor
attempt write_root touch /platform-doctor
attempt write_workspace touch /workspace/platform-doctor
attempt read_launch_file cat /run/platform/launch.json
attempt read_daemon_environment grep -q DOCTOR_MARK /proc/[0-9]*/environ
attempt signal_daemon sh -c 'kill -0 $(grep -l "platform-agen[t]" /proc/[0-9]*/cmdline | cut -d/ -f3)'
attempt write_home touch /opt/platform/home/platform-doctor
attempt write_sysctl sh -c 'echo core > /proc/sys/kernel/core_pattern'
`;

/** @param {string} script run by the agent's shell; @returns {string} its output */
const asAgent = (script) => {
  const [command = "", ...args] = [...settings.prefix, "sh", "-c", script, "doctor"];
  try {
    return execFileSync(command, args, {
      encoding: "utf8",
      timeout: 10_000,
      env: { PATH: process.env.PATH },
    });
  } catch (error) {
    return `failed ${error instanceof Error ? error.message : String(error)}\n`;
  }
};

const report = {
  status: asAgent("cat /proc/self/status"),
  attempts: asAgent(ATTEMPTS),
  processes: asAgent("ls /proc | grep -c '^[0-9]'"),
  interfaces: asAgent("tail -n +3 /proc/net/dev"),
  limits: asAgent("cat /proc/self/limits"),
  // gVisor's /proc/self/status does not have it.
  privileges: asAgent("setpriv --dump"),
};
writeFileSync("/run/platform/agent/report.json", JSON.stringify(report));
