/**
 * Starts the processes of one sandbox on this machine: record, directories, launcher, PID 1. The order ensures that
 * `disk/teardown.ts` finds and removes whatever a crash leaves, at any point (sandbox/port.ts P4):
 *
 *  O1 The record names the groups and the container before the first of them exists.
 *  O2 Everything else is made side by side. The launcher does nothing until it hears "go", and ends with the service. It
 *     hears that once it is recorded and everything is made.
 *  O3 A start that fails ends when each of its parts has ended. Only then may the sandbox be torn down.
 */
import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { type LaunchSettings, PROXY_VARIABLES } from "../../../domain/sandbox/launch.ts";
import { type Program, startProgram } from "../../../starter/starter.ts";
import { groupDirectories, joinGroups, makeGroups } from "../limits/cgroup.ts";
import { bootContainer, type PlannedBoot, reportContainer } from "./container-boot.ts";
import { settingsOfSpec } from "../../launch-settings.ts";
import type { Installation } from "../installation.ts";
import type { LaunchRequest, LauncherStart, SandboxUsers } from "../isolation/isolation.ts";
import { FILTER_FD, SIGNAL_FD } from "./launcher.ts";
import {
  type InsideTree,
  type OpenedImage,
  SANDBOX_HOME,
  WORKSPACE,
  agentPath,
  platformPath,
  sandboxLayout,
} from "./layout.ts";
import type { SandboxSpec } from "../../port.ts";
import { earlyEnd } from "../disk/log-tail.ts";
import { identify } from "../processes.ts";
import { type SandboxPaths, type SandboxRecord, writeRecord } from "../disk/run-directory.ts";

/** Time limit for the launcher and PID 1 to start, in milliseconds. On an idle machine both take a few. */
const START_TIMEOUT_MS = 20_000;

export interface BootRequest {
  readonly paths: SandboxPaths;
  readonly record: SandboxRecord;
  readonly settings: LaunchSettings;
  readonly environment: Readonly<Record<string, string>>;
  /** If null, the sandbox sees the machine's own root. */
  readonly image: OpenedImage | null;
  /** The agent runtime that this node has for it. Absent: its program is elsewhere. */
  readonly runtime?: InsideTree | undefined;
  /** Further work that must be done before PID 1 runs. If it fails, the start fails. */
  readonly beside?: Promise<unknown>;
}

/** Settings for the daemon and the agent, in addition to the injected environment. */
export const launchSettings = (
  installation: Installation,
  spec: SandboxSpec,
  { record, image }: { readonly record: SandboxRecord; readonly image: OpenedImage | null },
): LaunchSettings => {
  const { uidBase, packages } = record;
  return {
    prefix: installation.isolation.agentPrefix({ uidBase, image }),
    ...settingsOfSpec(installation.options, spec, packages),
    agentPath: agentPath(image, image?.path ?? null),
    ...((image !== null || spec.variables !== undefined) && {
      imageEnv: { ...image?.env, ...spec.variables },
    }),
    commonEnv: {
      PATH: platformPath(image),
      HOME: SANDBOX_HOME,
      LANG: "C.UTF-8",
      ...PROXY_VARIABLES,
    },
  };
};

/** Waits for each of them, and then throws the first failure, so that nothing is under way any more (O3). */
const allDone = async (parts: readonly Promise<unknown>[]): Promise<void> => {
  const failure = (await Promise.allSettled(parts)).find(({ status }) => status === "rejected");
  if (failure?.status === "rejected") throw failure.reason;
};

interface Ownership {
  readonly uid: number;
  readonly mode: number;
}

const makeDirectory = async (path: string, { uid, mode }: Ownership): Promise<void> => {
  await mkdir(path, { recursive: true });
  if (process.geteuid?.() === 0) await chown(path, uid, uid);
  await chmod(path, mode);
};

/**
 * Creates the sandbox's directories below its own. If the service is root, each directory belongs to the uid that may write
 * it, and root owns the rest.
 */
const makeDirectories = async (paths: SandboxPaths, users: SandboxUsers | null): Promise<void> => {
  const own = process.geteuid?.() ?? 0;
  const daemon = users?.daemon ?? own;
  const agent = users?.agent ?? own;
  const openRoot = async (): Promise<void> => {
    if (users !== null) await chown(paths.root, own, users.setup);
    await chmod(paths.root, users === null ? 0o700 : 0o710);
  };
  await allDone([
    openRoot(),
    makeDirectory(paths.disk, { uid: own, mode: 0o711 }),
    makeDirectory(paths.run, { uid: daemon, mode: 0o711 }),
    makeDirectory(paths.agentReadable, { uid: daemon, mode: 0o755 }),
    makeDirectory(paths.proxyMount, { uid: own, mode: 0o711 }),
    makeDirectory(paths.proxy, { uid: own, mode: 0o711 }),
    makeDirectory(paths.newRoot, { uid: own, mode: 0o755 }),
    makeDirectory(paths.workspace, { uid: agent, mode: 0o755 }),
    makeDirectory(paths.home, { uid: agent, mode: 0o755 }),
    makeDirectory(paths.tmp, { uid: agent, mode: 0o1777 }),
  ]);
};

const writeLaunchFile = async (paths: SandboxPaths, settings: LaunchSettings, users: SandboxUsers | null) => {
  await writeFile(paths.launch, JSON.stringify(settings), { mode: 0o600 });
  if (users !== null) await chown(paths.launch, users.daemon, users.daemon);
};

/** Reads the progress lines of the launcher and PID 1. Ends when all of them have closed the pipe. */
const stages = (signal: Socket): ((expected: string) => Promise<boolean>) => {
  let text = "";
  let isOver = false;
  const waiting: (() => void)[] = [];
  const wake = (): void => waiting.splice(0).forEach((resume) => resume());
  signal.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    wake();
  });
  for (const event of ["end", "error", "close"]) {
    signal.on(event, () => {
      isOver = true;
      wake();
    });
  }
  const reach = async (expected: string): Promise<boolean> => {
    if (text.includes(`${expected}\n`)) return true;
    if (isOver) return false;
    await new Promise<void>((resume) => waiting.push(resume));
    return reach(expected);
  };
  return reach;
};

const launchRequest = (
  installation: Installation,
  { paths, record: { id, uidBase }, image, runtime, environment }: BootRequest,
): LaunchRequest => ({
  id,
  paths,
  layout: sandboxLayout(paths, installation.parts, { image, runtime: runtime ?? null }),
  image,
  uidBase,
  environment: {
    ...environment,
    // spec.md, injected environment: part of the image, so it is not injected.
    PLATFORM_WORKSPACE: WORKSPACE,
    PATH: platformPath(image),
    HOME: SANDBOX_HOME,
  },
});

const startLauncher = async (
  { launch }: LauncherStart,
  request: LaunchRequest,
  users: SandboxUsers | null,
): Promise<Program> => {
  const { log } = request.paths;
  const { command, environment, filter } = await launch(request);
  const [program = "", ...args] = command;
  return startProgram({
    program,
    args,
    cwd: "/",
    env: environment,
    group: "own",
    // The sandbox outlives the service, so it writes its output to a file, and its record finds it again.
    graceMs: null,
    descriptors: [0, SIGNAL_FD],
    files: [
      { descriptor: 1, path: log, flags: "a" },
      { descriptor: 2, path: log, flags: "a" },
      ...(filter === null ? [] : [{ descriptor: FILTER_FD, path: filter, flags: "r" } as const]),
    ],
    ...(users !== null && { user: users.setup }),
  });
};

const mapIdentities = async (pid: number, { map }: SandboxUsers): Promise<void> => {
  await Promise.all(["gid_map", "uid_map"].map((file) => writeFile(`/proc/${pid}/${file}`, map)));
};

/** Rejects after a while: a launcher that hangs must not block its caller for ever. */
const deadline = (milliseconds: number): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>();
  AbortSignal.timeout(milliseconds).addEventListener("abort", () =>
    reject(new Error(`no answer within ${milliseconds / 1000} s`)),
  );
  return promise;
};

/** The parts of a sandbox that are needed while it runs. */
export interface Booted {
  readonly record: SandboxRecord;
  /** Calls back once PID 1 has ended, with what is known about that. Not if the report was lost. */
  readonly onEnd: (report: (message: string) => void) => void;
}

/**
 * Starts a sandbox, whose own directory exists, and returns once its PID 1 runs.
 * @throws Error with the launcher's output, or the engine's message. The caller then tears the sandbox down.
 */
export const boot = async (installation: Installation, request: BootRequest): Promise<Booted> => {
  const { paths } = request;
  const { uidBase, id } = request.record;
  const { isolation, options } = installation;
  const { start } = isolation;
  const users = uidBase === null ? null : isolation.users(uidBase);
  const record = {
    ...request.record,
    cgroups: groupDirectories(installation.groupParents, id),
    ...(start.by === "engine" && { container: { ...start.place(id), cgroups: [] } }),
  };
  // O1: otherwise a group or a container could outlive a service that is killed in between.
  await writeRecord(paths, record);
  const plan = { record, users, request: launchRequest(installation, request) };
  const processes = isolation.hostProcesses(options.limits.processes);
  const preparation = allDone([
    makeDirectories(paths, users).then(() => writeLaunchFile(paths, request.settings, users)),
    makeGroups(installation.groupParents, id, { ...options.limits, processes }),
    ...(request.beside === undefined ? [] : [request.beside]),
  ]);
  if (start.by === "launcher") {
    const booting = bootLauncher(start, plan, preparation);
    await allDone([preparation, booting]);
    return booting;
  }
  await preparation;
  const container = await bootContainer(start, plan);
  return { record: container, onEnd: (report) => reportContainer(container, report) };
};

/** @param preparation completes when everything is made that the sandbox needs. */
const bootLauncher = async (
  start: LauncherStart,
  { record: planned, users, request }: PlannedBoot,
  preparation: Promise<void>,
): Promise<Booted> => {
  const { paths } = request;
  const program = await startLauncher(start, request, users);
  try {
    await Promise.race([program.started, deadline(START_TIMEOUT_MS)]);
    const stdin = program.sockets.get(0);
    const signal = program.sockets.get(SIGNAL_FD);
    if (stdin === undefined || signal === undefined) throw new Error("the launcher has no connection");
    const reach = stages(signal);
    const step = async (stage: string): Promise<void> => {
      if (await Promise.race([reach(stage), deadline(START_TIMEOUT_MS)])) return;
      throw await earlyEnd(paths.log);
    };
    await step("waiting");
    const launcher = identify(program.pid());
    if (launcher === null) throw new Error("the launcher ended early");
    if (users !== null) await mapIdentities(launcher.pid, users);
    await preparation;
    await joinGroups(planned.cgroups, launcher.pid);
    const record = { ...planned, launcher };
    await writeRecord(paths, record);
    stdin.end("go\n");
    await step("up");
    return {
      record,
      onEnd: (report) =>
        void program.ended.then(
          (end) => end !== "lost" && report(`its PID 1 ended with ${end.signal ?? `code ${end.code}`}`),
        ),
    };
  } catch (error) {
    program.abandon();
    if (program.isRunning())
      await Promise.race([program.ended, deadline(START_TIMEOUT_MS)]).catch(() => undefined);
    throw error;
  } finally {
    for (const socket of program.sockets.values()) socket.destroy();
  }
};
