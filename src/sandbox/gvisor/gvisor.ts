/**
 * The provider `gvisor`: sandboxes that do not share this machine's kernel. gVisor's `runsc` answers a sandbox's system
 * calls itself. It runs as uid 0 of a user namespace that is mapped to unprivileged host uids, in namespaces that
 * bubblewrap makes, without KVM and without a container engine. Everything else is as for `local` and in ../machine.
 *
 *  V1 `runsc` never runs as real root: the uids of a sandbox's files would be those of the machine.
 *  V2 The daemon is uid 0 inside and the agent 1001. Both are unprivileged users outside, and uids without a map do not
 *     exist there.
 *  V3 The agent has a pid namespace and a /proc of its own (../machine/isolation/own-kernel.ts).
 *  V4 Control groups around all of it bound memory and processes. gVisor makes none.
 */
import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { installGate } from "../machine/installation.ts";
import type {
  Isolation,
  Kind,
  LaunchRequest,
  Launcher,
  Preparation,
  SandboxUsers,
} from "../machine/isolation/isolation.ts";
import { INNER_CLOSE_FROM, OWN_NAMESPACES, SIGNAL_FD, init, waiting } from "../machine/boot/launcher.ts";
import { AGENT_UID } from "../machine/boot/layout.ts";
import { ownKernelGates, ownKernelPrefix, ownKernelProcesses } from "../machine/isolation/own-kernel.ts";
import { installFile } from "../machine/disk/run-directory.ts";
import { isFiltered, judge } from "../machine/sighting.ts";
import { containerConfig, surroundings } from "./container.ts";
import { PLATFORM, findRunsc } from "./runsc.ts";

/** @param runsc the program. Null means the one on the PATH */
export const gvisorKind = (runsc: string | null): Kind => ({
  name: "gvisor",
  prepare: (preparation) => prepare(runsc, preparation),
});

const prepare = async (
  setting: string | null,
  { options, tools, ownUids }: Preparation,
): Promise<Isolation> => {
  const runscPath = await findRunsc(setting, options.path);
  const { bwrap } = tools;
  if (bwrap === null) throw new Error("not installed: bwrap (bubblewrap)");
  if (!ownUids) throw new Error("the service must run as root, to give each sandbox users of its own");
  if (process.arch !== "x64") throw new Error("it works on x86-64 only");
  const { runDir } = options;
  // A copy, because the sandboxes' users may not reach the original.
  const runsc = await installFile(runDir, runscPath, "runsc");
  const gate = await installGate(runDir, { name: "runsc-gate", closeFrom: INNER_CLOSE_FROM, kind: null });
  return {
    provider: "gvisor",
    form: PLATFORM,
    enforcer: "gvisor",
    summary: `gVisor (${PLATFORM}): a kernel of its own for each sandbox, without this machine's network`,
    library: await ownKernelGates(runDir),
    files: [runsc, gate],
    needsGroups: true,
    hostProcesses: ownKernelProcesses,
    users,
    agentPrefix: ({ image }) => ownKernelPrefix(AGENT_UID, { image }),
    start: {
      by: "launcher",
      launch: async (request): Promise<Launcher> => {
        const places = await writeContainer(
          request,
          JSON.stringify(containerConfig(request, options.limits)),
        );
        return {
          command: [
            gate,
            tools.unshare,
            "--user",
            "--",
            ...waiting(tools),
            bwrap,
            ...OWN_NAMESPACES,
            // runsc needs every capability, all of them in the sandbox's user namespace.
            "--cap-add",
            "ALL",
            "--chdir",
            "/",
            ...surroundings(request, runsc),
            "--",
            "/bin/sh",
            "-c",
            INIT,
            "sandbox",
            ...runCommand(runsc, places),
          ],
          environment: { PATH: options.path },
          filter: null,
        };
      },
    },
    findings: (sighting) => [
      judge("gvisor")(
        "system calls",
        isFiltered(sighting),
        "answered by gVisor, not by this machine's kernel; a seccomp filter inside",
      ),
    ],
  };
};

/** Inside, 0 is the daemon's and 1001 the agent's. runsc starts some of its parts as 65534. */
const users = (base: number): SandboxUsers => ({
  setup: base,
  daemon: base,
  agent: base + 2,
  map: `0 ${base} 1\n${AGENT_UID} ${base + 2} 1\n65534 ${base + 1} 1\n`,
});

/** Where `runsc` finds the container, and where it keeps its own state. */
interface Places {
  readonly bundle: string;
  readonly state: string;
}

/** Only the sandbox's set-up user and root can read them. They go with the sandbox's directory. */
const writeContainer = async ({ paths, uidBase }: LaunchRequest, config: string): Promise<Places> => {
  if (uidBase === null) throw new Error("a sandbox of gVisor has users of its own");
  const { setup } = users(uidBase);
  const places = { bundle: join(paths.root, "container"), state: join(paths.root, "runsc") };
  for (const directory of Object.values(places)) {
    // eslint-disable-next-line no-await-in-loop -- two
    await mkdir(directory, { mode: 0o700 });
    // eslint-disable-next-line no-await-in-loop -- two
    await chown(directory, setup, setup);
  }
  const file = join(places.bundle, "config.json");
  await writeFile(file, config, { mode: 0o600 });
  await chown(file, setup, setup);
  return places;
};

/** The container's name, which matters only in the sandbox's own state. */
const NAME = "sandbox";

/** `runsc run` passes no signal on, so PID 1 asks for that. `$1` is the program, and `$2` says where its state is. */
const INIT = ["runsc=$1; state=$2", init(`"$runsc" "$state" kill ${NAME} TERM 2>/dev/null`)].join("\n");

const runCommand = (runsc: string, { bundle, state }: Places): string[] => [
  runsc,
  `--root=${state}`,
  `--platform=${PLATFORM}`,
  "--network=none",
  // The service sets the limits, in groups of its own.
  "--ignore-cgroups",
  // The daemon's socket and the egress proxy's are the only ones in reach (machine/boot/layout.ts).
  "--host-uds=all",
  // Files are written where the limits on the disk are measured, not in memory.
  "--overlay2=none",
  "run",
  `--pass-fd=${SIGNAL_FD}:${SIGNAL_FD}`,
  `--bundle=${bundle}`,
  NAME,
];
