/**
 * The fake cluster's node: it runs a Pod's containers as real processes of this machine. bubblewrap gives each container its
 * mounts, its pid namespace, its user and its capabilities, with the Pod's own commands and environment.
 *
 * Unlike a real node, containers of a Pod share no network: the sandbox has only loopback, and the link has this machine's, on an
 * address of 127.0.0.0/8 that is the Pod's. No limit is enforced.
 */
import { type ChildProcess, spawn } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { V1Container, V1ContainerStatus, V1Pod } from "@kubernetes/client-node";
import { type Image, RUNTIME_VARIABLES, rootOf } from "./images.ts";
import type { FakeApiServer } from "./api-server.ts";
import type { StoreEvent } from "./store.ts";

export interface KubeletOptions {
  readonly server: FakeApiServer;
  /** Short, and other users can traverse it. */
  readonly directory: string;
  readonly images: Record<string, Image>;
  /** Pulls an image that is not here. Null: no registry has it. */
  readonly pull?: (reference: string) => Promise<Image | null>;
}

interface Running {
  readonly name: string;
  readonly process: ChildProcess;
  /** PID 1 of the container, on this machine. */
  pid: number | null;
  readonly ended: Promise<number>;
}

interface Local {
  readonly directory: string;
  readonly ip: string;
  readonly running: Map<string, Running>;
  isStopping: boolean;
}

let pods = 0;

/** Test files run side by side: each process has 250 addresses of its own. */
const addressOf = (number: number): string =>
  `127.${64 + (process.pid & 0x7f)}.${(process.pid >> 7) & 0xff}.${(number % 250) + 1}`;

export class FakeKubelet {
  readonly #options: KubeletOptions;
  readonly #pods = new Map<string, Local>();
  readonly #stop: () => void;
  /** New Pods find no node. */
  unschedulable = false;
  /** New sandboxes have this machine's network: a cluster that enforces no network policy. */
  openNetwork = false;
  /** Nothing is run or stopped any more: the node is lost. */
  lost = false;

  constructor(options: KubeletOptions) {
    this.#options = options;
    const { server } = options;
    server.logOf = (pod, container) => this.#logOf(pod, container);
    this.#stop = server.store.watch(Number(server.store.version), (event) => this.#saw(event));
  }

  async close(): Promise<void> {
    this.#stop();
    await Promise.all([...this.#pods.keys()].map((name) => this.#kill(name, "SIGKILL")));
  }

  /** Kills PID 1 of a Pod's container. */
  killContainer(pod: string, container: string): void {
    const pid = this.#pods.get(pod)?.running.get(container)?.pid;
    if (pid === undefined || pid === null) throw new Error(`${pod} has no container ${container} that runs`);
    process.kill(pid, "SIGKILL");
  }

  /** Processes and directories of a Pod on this machine. */
  leftovers(pod: string): readonly string[] {
    const local = this.#pods.get(pod);
    const left = existsSync(join(this.#options.directory, pod)) ? [join(this.#options.directory, pod)] : [];
    return [...left, ...[...(local?.running.values() ?? [])].map(({ name }) => `process of ${name}`)];
  }

  /** Writes a status as this node would, e.g. of an eviction. */
  setStatus(pod: string, change: (status: NonNullable<V1Pod["status"]>) => V1Pod["status"]): void {
    this.#options.server.store.update("pods", pod, (object) => ({
      ...object,
      status: change(object.status ?? {}) ?? {},
    }));
  }

  #saw({ type, kind, object }: StoreEvent): void {
    if (kind !== "pods" || this.lost) return;
    const name = object.metadata?.name ?? "";
    if (type === "ADDED") void this.#run(object);
    if (type !== "MODIFIED") return;
    const local = this.#pods.get(name);
    if (local?.isStopping === true) return;
    if (object.metadata?.deletionTimestamp !== undefined) void this.#remove(name, local);
    else if (object.spec?.activeDeadlineSeconds !== undefined && object.status?.reason === undefined)
      void this.#pastDeadline(name, local);
  }

  async #run(pod: V1Pod): Promise<void> {
    const name = pod.metadata?.name ?? "";
    if (this.unschedulable)
      return this.setStatus(name, (status) => ({
        ...status,
        conditions: [
          {
            type: "PodScheduled",
            status: "False",
            reason: "Unschedulable",
            message: "0/3 nodes are available: 3 Insufficient memory.",
          },
        ],
      }));
    pods += 1;
    const local: Local = {
      directory: join(this.#options.directory, name),
      ip: addressOf(pods),
      running: new Map(),
      isStopping: false,
    };
    this.#pods.set(name, local);
    makeWritable(local.directory);
    for (const { name: volume } of pod.spec?.volumes ?? []) makeWritable(join(local.directory, volume));
    await this.#pull(pod);
    const missing = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].find(
      ({ image = "" }) => !(image in this.#options.images),
    );
    if (missing !== undefined) return this.#cannotPull(name, missing);
    for (const container of pod.spec?.initContainers ?? []) {
      // eslint-disable-next-line no-await-in-loop -- one after the other, by definition
      const code = await this.#start(pod, local, container).ended;
      if (local.isStopping) return;
      if (code !== 0)
        return this.setStatus(name, (status) => ({
          ...status,
          phase: "Failed",
          initContainerStatuses: [terminated(container, code)],
        }));
    }
    await this.#secretsOf(pod, local);
    if (local.isStopping) return;
    for (const container of pod.spec?.containers ?? []) void this.#follow(pod, local, container);
    this.setStatus(name, (status) => ({
      ...status,
      phase: "Running",
      podIP: local.ip,
      // One that has ended already stays so.
      containerStatuses: (pod.spec?.containers ?? []).map(
        (container) =>
          status.containerStatuses?.find(({ name: known }) => known === container.name) ?? runs(container),
      ),
    }));
  }

  async #pull(pod: V1Pod): Promise<void> {
    const { images, pull } = this.#options;
    for (const { image = "" } of [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]) {
      if (image in images) continue;
      // eslint-disable-next-line no-await-in-loop -- a few containers
      const pulled = (await pull?.(image)) ?? null;
      if (pulled !== null) images[image] = pulled;
    }
  }

  #cannotPull(pod: string, container: V1Container): void {
    this.setStatus(pod, (status) => ({
      ...status,
      containerStatuses: [
        {
          ...statusOf(container),
          state: {
            waiting: { reason: "ImagePullBackOff", message: `Back-off pulling image "${container.image}"` },
          },
        },
      ],
    }));
  }

  /** A Pod starts when the Secrets of its volumes exist. */
  async #secretsOf(pod: V1Pod, local: Local): Promise<void> {
    const { store } = this.#options.server;
    for (const { name, secret } of pod.spec?.volumes ?? []) {
      const wanted = secret?.secretName;
      if (wanted === undefined) continue;
      // eslint-disable-next-line no-await-in-loop -- one volume after the other
      while (!local.isStopping && store.find("secrets", wanted) === null) await tick();
      for (const [key, value] of Object.entries(store.find("secrets", wanted)?.stringData ?? {}))
        writeFileSync(join(local.directory, name, key), value, { mode: 0o444 });
    }
  }

  async #follow(pod: V1Pod, local: Local, container: V1Container): Promise<void> {
    const name = pod.metadata?.name ?? "";
    const code = await this.#start(pod, local, container).ended;
    if (this.#options.server.store.find("pods", name) === null || this.lost) return;
    this.setStatus(name, (status) => ({
      ...status,
      containerStatuses: (status.containerStatuses ?? []).map((one) =>
        one.name === container.name ? terminated(container, code) : one,
      ),
    }));
  }

  #start(pod: V1Pod, local: Local, container: V1Container): Running {
    const uid = container.securityContext?.runAsUser ?? 0;
    const log = join(local.directory, `${container.name}.log`);
    const child = spawn("bwrap", this.#arguments(pod, local, container), {
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      env: {},
      ...(uid === 0 ? {} : { uid, gid: uid }),
    });
    const running: Running = {
      name: container.name,
      process: child,
      pid: null,
      ended: new Promise((resolve) =>
        child.once("close", (code, signal) => {
          local.running.delete(container.name);
          resolve(code ?? (signal === null ? 1 : 137));
        }),
      ),
    };
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => existsSync(local.directory) && appendFileSync(log, chunk));
    child.stdio[3]?.on("data", (chunk: Buffer) => {
      running.pid = Number(/"child-pid": (\d+)/.exec(chunk.toString())?.[1] ?? Number.NaN) || running.pid;
    });
    local.running.set(container.name, running);
    return running;
  }

  #arguments(pod: V1Pod, local: Local, container: V1Container): string[] {
    const image = this.#options.images[container.image ?? ""] ?? "host";
    const volumes = (container.volumeMounts ?? []).toSorted(
      (a, b) => a.mountPath.length - b.mountPath.length,
    );
    const environment = (container.env ?? []).map(({ name, value, valueFrom }) => [
      name,
      valueFrom?.fieldRef?.fieldPath === "status.podIP" ? local.ip : (value ?? ""),
    ]);
    const own = image === "host" ? {} : image.env;
    const variables = new Map([
      ...Object.entries({ ...RUNTIME_VARIABLES, ...own }),
      ...environment.map(([name = "", value = ""]) => [name, value] as const),
    ]);
    const expanded = (container.command ?? []).map((part) =>
      part.replaceAll(/\$\(([A-Z_]+)\)/g, (whole, name: string) => variables.get(name) ?? whole),
    );
    const capabilities = container.securityContext?.capabilities?.add ?? [];
    return [
      "--tmpfs",
      "/",
      // bubblewrap opens directories that it makes on the way to its own user alone.
      ...["/opt", "/run", "/etc", "/usr", "/usr/local", "/usr/local/bin"].flatMap((name) => [
        "--perms",
        "755",
        "--dir",
        name,
      ]),
      ...rootOf(image),
      ...(volumes.some(({ mountPath }) => mountPath === "/tmp")
        ? []
        : ["--perms", "1777", "--tmpfs", "/tmp"]),
      "--proc",
      "/proc",
      "--dev",
      "/dev",
      ...volumes.flatMap(({ name, mountPath, subPath, readOnly }) => [
        readOnly === true ? "--ro-bind" : "--bind",
        join(local.directory, name, subPath ?? ""),
        mountPath,
      ]),
      "--remount-ro",
      "/",
      "--unshare-pid",
      "--unshare-ipc",
      "--unshare-uts",
      ...(container.name === "link" || this.openNetwork ? [] : ["--unshare-net"]),
      "--hostname",
      pod.spec?.hostname ?? "pod",
      "--die-with-parent",
      "--as-pid-1",
      "--new-session",
      "--info-fd",
      "3",
      "--cap-drop",
      "ALL",
      ...capabilities.flatMap((name) => ["--cap-add", `CAP_${name}`]),
      "--clearenv",
      ...[...variables].flatMap(([name, value]) => ["--setenv", name, value]),
      "--chdir",
      container.workingDir ?? "/",
      "--",
      ...expanded,
    ];
  }

  async #kill(pod: string, signal: NodeJS.Signals): Promise<void> {
    const running = [...(this.#pods.get(pod)?.running.values() ?? [])];
    for (const { pid, process: child } of running) {
      if (pid === null) child.kill("SIGKILL");
      else killQuietly(pid, signal);
    }
    const late = setTimeout(() => {
      for (const { pid, process: child } of running) {
        if (pid !== null) killQuietly(pid, "SIGKILL");
        child.kill("SIGKILL");
      }
    }, 5_000);
    await Promise.all(running.map(({ ended }) => ended));
    clearTimeout(late);
  }

  async #remove(pod: string, local: Local | undefined): Promise<void> {
    if (local !== undefined) {
      local.isStopping = true;
      await this.#kill(pod, "SIGTERM");
      rmSync(local.directory, { recursive: true, force: true });
      this.#pods.delete(pod);
    }
    this.#options.server.store.remove("pods", pod);
  }

  /** The containers end, and the Pod stays with its logs. */
  async #pastDeadline(pod: string, local: Local | undefined): Promise<void> {
    await this.#kill(pod, "SIGTERM");
    if (local?.isStopping === true) return;
    this.setStatus(pod, (status) => ({ ...status, phase: "Failed", reason: "DeadlineExceeded" }));
  }

  #logOf(pod: string, container: string): string | null {
    const log = join(this.#options.directory, pod, `${container}.log`);
    return existsSync(log) ? readFileSync(log, "utf8") : null;
  }
}

const statusOf = ({ name, image = "" }: V1Container): V1ContainerStatus => ({
  name,
  image,
  imageID: image,
  ready: false,
  restartCount: 0,
});

const runs = (container: V1Container): V1ContainerStatus => ({
  ...statusOf(container),
  state: { running: {} },
});

const terminated = (container: V1Container, exitCode: number): V1ContainerStatus => ({
  ...statusOf(container),
  state: { terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error" } },
});

const makeWritable = (directory: string): void => {
  mkdirSync(directory, { recursive: true });
  // As an emptyDir: for every user, whatever the umask.
  chmodSync(directory, 0o777);
};

const killQuietly = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
};

const tick = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
