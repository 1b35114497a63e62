/**
 * What differs in a sandbox whose system calls gVisor answers, with and without an engine.
 *
 * gVisor's /proc shows every process's environment to every user, and the daemon's has PLATFORM_TOKEN. So the agent has
 * a pid namespace and a /proc of its own, and the daemon keeps the capability to make them, inside gVisor.
 */
import { BUNDLE_TOOLS } from "../../bundle/bundle.ts";
import { installGate } from "../installation.ts";
import type { Isolation } from "./isolation.ts";
import { AGENT_GATE, AGENT_INIT, DROP_ALL, INNER_CLOSE_FROM, INNER_GATE, become } from "../boot/launcher.ts";
import { LIBRARY } from "../boot/layout.ts";

/** The gates inside: the daemon starts each command of the agent in namespaces of its own. */
export const ownKernelGates = async (runDir: string): Promise<Record<string, string>> => ({
  [INNER_GATE]: await installGate(runDir, {
    name: INNER_GATE,
    closeFrom: INNER_CLOSE_FROM,
    kind: "supervisor",
  }),
  [AGENT_GATE]: await installGate(runDir, { name: AGENT_GATE, closeFrom: 3, kind: "agent" }),
});

/**
 * gVisor bounds the processes of each user inside. Outside, each of their address spaces is a process with few threads.
 * Where a sandbox reaches this bound, gVisor cannot go on, and the sandbox ends.
 */
export const ownKernelProcesses = (inside: number): number => inside * HOST_PROCESSES_EACH + GVISOR_THREADS;
const HOST_PROCESSES_EACH = 4;
const GVISOR_THREADS = 256;

/** The agent's pid namespace, and its /proc over the sandbox's. @param uid the agent's, inside */
export const ownKernelPrefix = (
  uid: number,
  { image }: Pick<Parameters<Isolation["agentPrefix"]>[0], "image">,
): string[] => [
  "unshare",
  "--pid",
  "--fork",
  "--kill-child=KILL",
  "--mount",
  "--mount-proc",
  "--",
  "setpriv",
  ...become(uid),
  ...DROP_ALL,
  `${LIBRARY}/${AGENT_GATE}`,
  image === null ? "/bin/sh" : `${BUNDLE_TOOLS}/sh`,
  "-c",
  AGENT_INIT,
  "agent",
];
