/**
 * The provider `local`: sandboxes from Linux namespaces, with or without bubblewrap, as root or as an ordinary user.
 * launch-plan.ts says how one starts. Everything else is in ../machine.
 */
import { release } from "node:os";
import { BUNDLE_TOOLS } from "../bundle/bundle.ts";
import { hasGates, installGate } from "../machine/installation.ts";
import type {
  Isolation,
  Kind,
  LaunchRequest,
  Launcher,
  Preparation,
} from "../machine/isolation/isolation.ts";
import { AGENT_GATE, INNER_CLOSE_FROM, INNER_GATE } from "../machine/boot/launcher.ts";
import { installContent, installFile } from "../machine/disk/run-directory.ts";
import { type FilterKind, machineArchitecture, seccompProgram } from "../machine/isolation/seccomp.ts";
import { isFiltered, judge } from "../machine/sighting.ts";
import { type Form, agentPrefix, launchCommand, launcherCloseFrom, localUsers } from "./launch-plan.ts";

/** Strongest first. */
const FORMS: readonly Form[] = ["bubblewrap", "namespaces"];

/** The ways in which `local` may work. @param form `auto`: each, the strongest first */
export const localKinds = (form: "auto" | Form): readonly Kind[] =>
  (form === "auto" ? FORMS : [form]).map((name) => ({
    name,
    prepare: (preparation) => prepare(name, preparation),
  }));

/** From Linux 5.14 on, RLIMIT_NPROC counts in each user namespace, as opposed to all processes of a uid. */
const countsInUserNamespace = (kernel: string): boolean => {
  const [major = 0, minor = 0] = kernel.split(".").map(Number);
  return major > 5 || (major === 5 && minor >= 14);
};

const installFilter = async (runDir: string, kind: FilterKind): Promise<string> => {
  const program = seccompProgram(kind, machineArchitecture());
  return installContent(runDir, `${kind}.bpf`, program);
};

/** If the service is an ordinary user, a second bubblewrap inside starts the agent. It has its own filter. */
const nestedLibrary = async (runDir: string, bwrap: string): Promise<Record<string, string>> => ({
  bwrap: await installFile(runDir, bwrap, "bwrap"),
  "agent.bpf": await installFilter(runDir, "agent"),
});

/**
 * In an ordinary user's sandbox, starting the agent creates further namespaces, so the filter of PID 1 must allow that.
 */
const filterOfPid1 = (ownUids: boolean): FilterKind => (ownUids ? "agent" : "supervisor");

/** The gates inside. They install the filters in the form without bubblewrap. */
const gateLibrary = async (runDir: string, ownUids: boolean): Promise<Record<string, string>> => ({
  [INNER_GATE]: await installGate(runDir, {
    name: INNER_GATE,
    closeFrom: INNER_CLOSE_FROM,
    kind: filterOfPid1(ownUids),
  }),
  ...(!ownUids && {
    [AGENT_GATE]: await installGate(runDir, { name: AGENT_GATE, closeFrom: 3, kind: "agent" }),
  }),
});

const makeLibrary = async (form: Form, { options, tools, ownUids }: Preparation) => {
  const { runDir } = options;
  if (form === "namespaces") return hasGates() ? gateLibrary(runDir, ownUids) : {};
  return ownUids || tools.bwrap === null ? {} : nestedLibrary(runDir, tools.bwrap);
};

const prepare = async (form: Form, preparation: Preparation): Promise<Isolation> => {
  const { options, tools, ownUids } = preparation;
  const { runDir } = options;
  if (form === "bubblewrap" && tools.bwrap === null) throw new Error("not installed: bwrap (bubblewrap)");
  /** The seccomp program that bubblewrap installs for PID 1 and its children. */
  const filter = form === "bubblewrap" ? await installFilter(runDir, filterOfPid1(ownUids)) : null;
  const outer = { name: "launcher-gate", closeFrom: launcherCloseFrom(form), kind: null };
  const gate = hasGates() ? await installGate(runDir, outer) : null;
  const countsProcesses = ownUids || countsInUserNamespace(release());
  const launch = async (request: LaunchRequest): Promise<Launcher> => ({
    command: launchCommand({
      form,
      uidBase: request.uidBase,
      tools,
      layout: request.layout,
      shell: imageShell(request),
      newRoot: request.paths.newRoot,
      gate,
      limits: {
        processes: countsProcesses ? options.limits.processes : null,
        openFiles: options.limits.openFiles,
        fileBytes: options.limits.diskBytes,
      },
    }),
    environment: request.environment,
    filter,
  });
  return {
    provider: "local",
    form,
    enforcer: "kernel",
    summary: summarize(form, gate !== null),
    library: await makeLibrary(form, preparation),
    files: [filter, gate].filter((file) => file !== null),
    needsGroups: false,
    hostProcesses: (inside) => inside,
    users: localUsers,
    agentPrefix: ({ uidBase, image }) =>
      agentPrefix({ form, uidBase, gated: gate !== null, shell: imageShell({ image }) }),
    start: { by: "launcher", launch },
    findings: (sighting) => [filterFinding(isFiltered(sighting))],
  };
};

/** In an image's root, no step of the start uses the image's own shell. */
const imageShell = ({ image }: Pick<LaunchRequest, "image">): string | null =>
  image === null ? null : `${BUNDLE_TOOLS}/sh`;

const summarize = (form: Form, isGated: boolean): string =>
  form === "bubblewrap"
    ? "bubblewrap: namespaces and a seccomp filter"
    : `plain namespaces${isGated ? " and a seccomp filter" : ", without a seccomp filter (weaker: install bubblewrap)"}`;

const filterFinding = (hasFilter: boolean) =>
  judge("kernel")(
    "system calls",
    hasFilter,
    hasFilter ? "a seccomp filter" : "no filter in this form on this processor; install bubblewrap",
  );
