/**
 * A container engine of the tests' own: Debian's `dockerd` with a directory of its own. It changes no setting of this
 * machine's network, and leaves nothing.
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

/** The limits of its containers that these tests do not set. The machine of CI allows no higher ones. */
const ULIMIT = "nofile=1024:1024";
/** As docs/operate/docker.md says. */
const RUNSC_ARGUMENTS = ["--platform=systrap", "--network=none", "--host-uds=all", "--overlay2=none"];
const POLL_MS = 50;

export class TestEngine {
  readonly directory: string;
  readonly socket: string;
  readonly #guarded: Guarded;
  #process: ChildProcess | null = null;

  private constructor(guarded: Guarded) {
    const { directory } = guarded;
    this.#guarded = guarded;
    this.directory = directory;
    this.socket = join(directory, "sock");
  }

  /** Starts an engine without containers and images. @param runsc gVisor's program, for a runtime `runsc` */
  static async open(runsc: string | null = null): Promise<TestEngine> {
    const guarded = guardedDirectory("platform-en-", "/tmp");
    const { directory } = guarded;
    await chmod(directory, 0o711);
    const engine = new TestEngine(guarded);
    const runtimes = runsc === null ? {} : { runsc: { path: runsc, runtimeArgs: RUNSC_ARGUMENTS } };
    await writeFile(join(directory, "daemon.json"), JSON.stringify({ runtimes }));
    await engine.start();
    return engine;
  }

  async start(): Promise<void> {
    const log = openSync(join(this.directory, "log"), "a");
    const at = (name: string): string => join(this.directory, name);
    const options: Record<string, string> = {
      "config-file": at("daemon.json"),
      "data-root": at("data"),
      "exec-root": at("exec"),
      pidfile: at("pid"),
      host: `unix://${this.socket}`,
      bridge: "none",
      "default-ulimit": ULIMIT,
      iptables: "false",
      ip6tables: "false",
      "ip-forward": "false",
      "ip-masq": "false",
    };
    const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    this.#process = spawn(dockerd ?? "dockerd", args, {
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
          const said = readFileSync(at("log"), "utf8").slice(-2000);
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
