/**
 * A container engine of the tests' own: Debian's `dockerd`, or Podman's service, with a directory of its own. It changes no
 * setting of this machine's network, and leaves nothing.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ContainerEngine } from "../../../src/sandbox/containers/engine.ts";
import { findProgram } from "../../../src/sandbox/machine/tools.ts";
import { WAIT_MS } from "../patience.ts";
import { guardedDirectory, type Guarded } from "./guard.ts";
import { unmountBelow } from "./mounts-below.ts";

const path = process.env["PATH"] ?? "";
const isRoot = process.geteuid?.() === 0;
const dockerd = findProgram("dockerd", path);

/** The reason, if this machine cannot run an engine. */
export const lacksEngine: string | null = isRoot && dockerd !== null ? null : "(needs root and docker.io)";

const podman = findProgram("podman", path);
/** The same for Podman. On a machine that mixes versions of control groups, it needs runc. */
export const lacksPodman: string | null =
  isRoot && podman !== null && findProgram("runc", path) !== null ? null : "(needs root, podman and runc)";

/** The limits of its containers that these tests do not set. The machine of CI allows no higher ones. */
const ULIMIT = "nofile=1024:1024";
/** As docs/operate/docker.md says. */
const RUNSC_ARGUMENTS = ["--platform=systrap", "--network=none", "--host-uds=all", "--overlay2=none"];
const POLL_MS = 50;

const flags = (options: Readonly<Record<string, string>>): string[] =>
  Object.entries(options).map(([name, value]) => `--${name}=${value}`);

const dockerCommand = ({ directory, socket }: TestEngine): readonly [string, string[]] => [
  dockerd ?? "dockerd",
  flags({
    "config-file": join(directory, "daemon.json"),
    "data-root": join(directory, "data"),
    "exec-root": join(directory, "exec"),
    pidfile: join(directory, "pid"),
    host: `unix://${socket}`,
    bridge: "none",
    "default-ulimit": ULIMIT,
    iptables: "false",
    ip6tables: "false",
    "ip-forward": "false",
    "ip-masq": "false",
  }),
];

const podmanCommand = ({ directory, socket }: TestEngine): readonly [string, string[]] => [
  podman ?? "podman",
  [
    ...flags({
      root: join(directory, "data"),
      runroot: join(directory, "exec"),
      tmpdir: join(directory, "tmp"),
      "storage-driver": "vfs",
      "cgroup-manager": "cgroupfs",
      runtime: "runc",
    }),
    "system",
    "service",
    "--time=0",
    `unix://${socket}`,
  ],
];

export class TestEngine {
  readonly directory: string;
  readonly socket: string;
  readonly #guarded: Guarded;
  readonly #command: (engine: TestEngine) => readonly [string, string[]];
  #process: ChildProcess | null = null;

  private constructor(command: (engine: TestEngine) => readonly [string, string[]]) {
    const guarded = guardedDirectory("platform-en-", "/tmp");
    const { directory } = guarded;
    this.#guarded = guarded;
    this.#command = command;
    this.directory = directory;
    this.socket = join(directory, "sock");
  }

  /** Starts an engine without containers and images. @param runsc gVisor's program, for a runtime `runsc` */
  static async open(runsc: string | null = null): Promise<TestEngine> {
    const engine = new TestEngine(dockerCommand);
    const runtimes = runsc === null ? {} : { runsc: { path: runsc, runtimeArgs: RUNSC_ARGUMENTS } };
    await writeFile(join(engine.directory, "daemon.json"), JSON.stringify({ runtimes }));
    await engine.start();
    return engine;
  }

  /** The same with Podman. Its containers outlive its service: remove them before `close`. */
  static async openPodman(): Promise<TestEngine> {
    const engine = new TestEngine(podmanCommand);
    await engine.start();
    return engine;
  }

  async start(): Promise<void> {
    await chmod(this.directory, 0o711);
    const log = openSync(join(this.directory, "log"), "a");
    const [program, args] = this.#command(this);
    this.#process = spawn(program, args, {
      // The guard finds it, and what it starts, by this.
      cwd: this.directory,
      stdio: ["ignore", log, log],
      env: { PATH: path },
    });
    const engine = new ContainerEngine(this.socket);
    for (let waited = 0; ; waited += POLL_MS) {
      try {
        // eslint-disable-next-line no-await-in-loop -- polling is one step after the other
        await engine.facts();
        return;
      } catch (error) {
        if (waited >= WAIT_MS || this.#process.exitCode !== null) {
          const said = readFileSync(join(this.directory, "log"), "utf8").slice(-2000);
          throw new Error(`the engine does not start: ${said}`, { cause: error });
        }
        // eslint-disable-next-line no-await-in-loop -- polling is one step after the other
        await sleep(POLL_MS);
      }
    }
  }

  /** Ends the engine, and with it its containers. Its data stays. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (child === null || child.exitCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  }

  /** What the engine's own command says. */
  docker(...args: readonly string[]): string {
    return execFileSync("docker", ["--host", `unix://${this.socket}`, ...args], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  async close(): Promise<void> {
    await this.stop();
    unmountBelow(this.directory);
    this.#guarded.remove();
  }
}
