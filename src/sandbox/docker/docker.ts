/**
 * The provider `docker`: each sandbox is a container of an engine on this machine, Docker or Podman with Docker's API.
 * The engine starts, bounds and removes it, with the runtime that the operator chose. Everything else is as for `local`
 * and in ../machine.
 *
 *  D1 The engine is on this machine: sandboxes reach the service through unix sockets that are mounted into them.
 *  D2 A container's description, log and image at the engine have no secret.
 *  D3 From their first own instruction on, daemon and agent are users of this machine that belong to this sandbox alone.
 *     Only `setpriv`, which becomes the daemon's user, runs as uid 0. Under gVisor the daemon is uid 0 of gVisor's kernel.
 *  D4 A container is on record before it exists, and its name follows from its sandbox's directory.
 */
import { chown, link, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type EngineFacts, EngineFailure, type ContainerEngine, engineAt } from "../containers/engine.ts";
import { hasGates, installGate } from "../machine/installation.ts";
import type {
  EngineStart,
  Isolation,
  Kind,
  LaunchRequest,
  Preparation,
  SandboxUsers,
} from "../machine/isolation/isolation.ts";
import { DROP_ALL, INNER_CLOSE_FROM, INNER_GATE, become } from "../machine/boot/launcher.ts";
import { AGENT_UID, DAEMON_UID, type MountStep, sandboxSettings } from "../machine/boot/layout.ts";
import { ownKernelGates, ownKernelPrefix, ownKernelProcesses } from "../machine/isolation/own-kernel.ts";
import { isFiltered, judge } from "../machine/sighting.ts";
import { findProgram } from "../machine/tools.ts";
import { containerOptions, containerRoot } from "./container.ts";
import type { DoctorFinding } from "../port.ts";
import { LABELS, containerName, containerLabels } from "./labels.ts";

/** How the operator's settings name an engine. */
export interface DockerSettings {
  /** The path of the engine's unix socket, also as `unix://…`. */
  readonly socket: string;
  /** Null means the engine's default. */
  readonly runtime: string | null;
}

export const dockerKind = (settings: DockerSettings): Kind => ({
  name: "docker",
  prepare: (preparation) => prepare(settings, preparation),
});

const prepare = async (
  { socket: named, runtime }: DockerSettings,
  { options, tools, ownUids }: Preparation,
): Promise<Isolation> => {
  const engine = engineAt(socketPath(named));
  const facts = await engine.facts();
  checkEngine(facts, { runtime, ownUids });
  const setpriv = findProgram("setpriv", options.path) ?? tools.sh;
  const isGated = hasGates();
  const { runDir, limits } = options;
  const name = runtime ?? facts.defaultRuntime;
  const isGvisor = basename(facts.runtimes[name] ?? name).startsWith("runsc");
  if (isGvisor && process.arch !== "x64") throw new Error("under gVisor it works on x86-64 only");
  const users = makeUsers(isGvisor);
  const hostProcesses = isGvisor ? ownKernelProcesses : (inside: number) => inside;
  const start = async (request: LaunchRequest): Promise<number> => {
    if (request.uidBase === null) throw new Error("a container has users of its own");
    const { daemon } = users(request.uidBase);
    await writeEnvironment(request, daemon);
    const layout = await withUsers(request, users(request.uidBase));
    const root = containerRoot(isGvisor ? await withPrograms(request, layout) : layout, facts.product);
    return startContainer(engine, containerName(runDir, request.id), async () =>
      containerOptions({
        request,
        root,
        image: await engine.ensureRoot(root.shape),
        limits: { ...limits, hostProcesses: hostProcesses(limits.processes) },
        runtime,
        labels: containerLabels(options, request.id),
        daemon,
        setpriv,
        isGated,
        isGvisor,
        product: facts.product,
      }),
    );
  };
  return {
    provider: "docker",
    form: `${facts.product} ${facts.version}, ${name}`,
    enforcer: isGvisor ? "gvisor" : "kernel",
    summary: `containers of ${facts.product} ${facts.version} (${name}), without a network`,
    library: isGvisor ? await ownKernelGates(runDir) : isGated ? await gateLibrary(runDir) : {},
    files: [],
    needsGroups: false,
    hostProcesses,
    users,
    agentPrefix: ({ uidBase, image }) => {
      const { agent } = users(uidBase ?? 0);
      return isGvisor ? ownKernelPrefix(agent, { image }) : ["setpriv", ...become(agent), ...DROP_ALL];
    },
    start: {
      by: "engine",
      controls: facts.controls,
      place: (id) => ({ socket: engine.socket, name: containerName(runDir, id) }),
      start,
      removeOthers: (ids) => removeOthers(engine, runDir, ids),
    } satisfies EngineStart,
    findings: (sighting) => [
      judge(isGvisor ? "gvisor" : "kernel")(
        "system calls",
        isFiltered(sighting),
        makeFilter({ isGvisor, isGated }),
      ),
      usersFinding(facts, isGvisor),
    ],
  };
};

const gateLibrary = async (runDir: string): Promise<Record<string, string>> => ({
  [INNER_GATE]: await installGate(runDir, { name: INNER_GATE, closeFrom: INNER_CLOSE_FROM, kind: "agent" }),
});

const makeFilter = ({
  isGvisor,
  isGated,
}: {
  readonly isGvisor: boolean;
  readonly isGated: boolean;
}): string => {
  if (isGvisor) return "answered by gVisor, not by this machine's kernel; a seccomp filter inside";
  return isGated
    ? "the engine's seccomp filter and ours"
    : "the engine's seccomp filter alone on this processor";
};

const usersFinding = ({ security }: EngineFacts, isGvisor: boolean): DoctorFinding => ({
  subject: "users",
  how: "kernel",
  detail: [
    ...(isGvisor
      ? ["the agent is a user that owns no file of this machine", "the daemon is uid 0 of gVisor's kernel"]
      : [
          "daemon and agent are users of this machine that own no other file",
          "the start of a container is uid 0 without its rights",
        ]),
    ...(security.some((option) => option.includes("name=userns"))
      ? ["the engine's own map of users is not used"]
      : []),
  ].join("; "),
});

/** @throws Error for an engine that is not on this machine */
export const socketPath = (setting: string): string => {
  const path = setting.replace(/^unix:\/\//, "");
  if (path.startsWith("/")) return path;
  throw new Error(
    `PLATFORM_DOCKER_SOCKET is ${setting}, which is not the path of a unix socket. The engine must run on this machine: sandboxes reach the service through sockets in their files`,
  );
};

const checkEngine = (
  { runtimes, security, os }: EngineFacts,
  { runtime, ownUids }: { readonly runtime: string | null; readonly ownUids: boolean },
): void => {
  const names = Object.keys(runtimes);
  if (!ownUids) {
    throw new Error(
      "the service must run as root, to give each sandbox users of its own. PLATFORM_SANDBOX_PROVIDER=local works without root",
    );
  }
  if (os !== "linux") throw new Error(`the engine runs containers of ${os}; sandboxes need Linux`);
  if (security.some((option) => option.includes("rootless"))) {
    throw new Error(
      "the engine is rootless, so it cannot give each sandbox users of its own. Name a root engine's socket in PLATFORM_DOCKER_SOCKET, or set PLATFORM_SANDBOX_PROVIDER=local",
    );
  }
  if (runtime !== null && names.length > 0 && !names.includes(runtime)) {
    throw new Error(
      `the engine has no runtime ${runtime} (PLATFORM_DOCKER_RUNTIME). It has ${names.toSorted().join(", ")}`,
    );
  }
};

/**
 * The container has no map of users, so its numbers are this machine's. gVisor keeps no capability of a program that is
 * not uid 0, so there the daemon is uid 0, of gVisor's kernel.
 */
const makeUsers =
  (isGvisor: boolean) =>
  (base: number): SandboxUsers => ({
    setup: base,
    daemon: isGvisor ? 0 : base + 1,
    agent: base + 2,
    map: "",
  });

/** The environment as a file that only the daemon's user can read. PID 1 removes it. */
const writeEnvironment = async ({ paths, environment }: LaunchRequest, daemon: number): Promise<void> => {
  const lines = Object.entries(environment).map(([name, value]) => {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new Error(`${name} is not the name of a variable`);
    return `export ${name}='${value.replaceAll("'", `'\\''`)}'\n`;
  });
  await writeFile(paths.environment, lines.join(""), { mode: 0o600 });
  await chown(paths.environment, daemon, daemon);
};

/** The directory of the programs that the daemon expects at a fixed path. */
const PROGRAMS = "/usr/local/bin";

/**
 * The layout with these programs in one directory, unless there is an image. gVisor makes a mount point that is missing: below this
 * machine's `/usr` it would leave an empty file for each program, which hides the machine's own of that name.
 */
const withPrograms = async (
  { paths, image }: LaunchRequest,
  layout: readonly MountStep[],
): Promise<readonly MountStep[]> => {
  if (image !== null) return layout;
  const source = join(paths.root, "programs");
  await mkdir(source, { mode: 0o755 });
  const rest: MountStep[] = [];
  for (const step of layout) {
    if (step.kind === "read-only-bind" && dirname(step.target) === PROGRAMS)
      // eslint-disable-next-line no-await-in-loop -- four
      await link(step.source, join(source, basename(step.target)));
    else if (step.target !== PROGRAMS) rest.push(step);
    else if (step.kind === "memory") rest.push({ kind: "read-only-bind", source, target: PROGRAMS });
  }
  return rest;
};

/** The layout with files of users and groups that have this sandbox's numbers. */
const withUsers = async (
  { paths, layout }: LaunchRequest,
  { daemon, agent }: SandboxUsers,
): Promise<readonly MountStep[]> => {
  const files = new Map<string, string>();
  for (const name of ["passwd", "group"] as const) {
    const file = join(paths.root, name);
    const content = (sandboxSettings[name] ?? "")
      .replaceAll(`:${DAEMON_UID}:`, `:${daemon}:`)
      .replaceAll(`:${AGENT_UID}:`, `:${agent}:`);
    // eslint-disable-next-line no-await-in-loop -- two
    await writeFile(file, content, { mode: 0o644 });
    files.set(`/etc/${name}`, file);
  }
  return layout.map((step) => {
    const source = files.get(step.target);
    return source === undefined || step.kind !== "read-only-bind" ? step : { ...step, source };
  });
};

/**
 * Makes and starts a container.
 * @returns the pid of its first program. 0: it has already ended
 */
const startContainer = async (
  engine: ContainerEngine,
  name: string,
  options: () => Promise<Parameters<ContainerEngine["create"]>[1]>,
): Promise<number> => {
  try {
    await engine.create(name, await options());
  } catch (error) {
    if (!(error instanceof EngineFailure) || error.reason !== "missing") throw error;
    // Another service removed the image, which no container used at that moment.
    await engine.create(name, await options());
  }
  await engine.start(name);
  return (await engine.state(name))?.pid ?? 0;
};

const removeOthers = async (
  engine: ContainerEngine,
  runDir: string,
  ids: ReadonlySet<string>,
): Promise<void> => {
  const containers = await engine.containers(`${LABELS.runDirectory}=${runDir}`);
  const others = containers.filter(({ labels }) => !ids.has(labels[LABELS.sandbox] ?? ""));
  await Promise.all(others.map(({ name }) => engine.remove(name)));
  await engine.pruneRoots();
};
