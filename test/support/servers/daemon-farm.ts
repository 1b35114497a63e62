/** A process with the daemons of simulated sandboxes (programs/sandboxes/daemon-farm.ts), and the settings of a service that uses them. */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { BARE, type Done, type Order } from "../programs/sandboxes/farm-orders.ts";

const PROGRAMS = path.join(import.meta.dirname, "../programs");
const HOOK = path.join(PROGRAMS, "linked-hook.ts");

export class DaemonFarm {
  readonly #child: ChildProcess;
  readonly #directory: string;
  readonly #ended: Promise<never>;

  private constructor(child: ChildProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
    this.#ended = once(child, "exit").then(() => {
      throw new Error("the daemons' process ended");
    });
    // An order that waits hears of it.
    this.#ended.catch(() => undefined);
  }

  /** `below` is a directory whose processes are ended with it. Its path is short: sockets are in it. */
  static async start(below: string): Promise<DaemonFarm> {
    const directory = path.join(below, "f");
    mkdirSync(directory);
    const child = fork(path.join(PROGRAMS, "daemon-farm.ts"), {
      cwd: directory,
      env: { ...process.env, TEST_DAEMON_FARM: directory },
      execArgv: ["--max-old-space-size=4096"],
    });
    await once(child, "message");
    return new DaemonFarm(child, directory);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The socket of the bare server. */
  get bare(): string {
    return path.join(this.#directory, BARE);
  }

  /** For a service whose simulated sandboxes have their daemons here. */
  get settings() {
    return {
      PLATFORM_SANDBOX_PROVIDER: "simulated",
      NODE_OPTIONS: `--import=${HOOK}`,
      TEST_DAEMON_FARM: this.#directory,
    } as const;
  }

  /** @returns when it is done. One order at a time. */
  async order(order: Order): Promise<Done> {
    this.#child.send(order);
    const [done] = (await Promise.race([once(this.#child, "message"), this.#ended])) as [Done];
    return done;
  }

  async end(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.disconnect();
    await ended;
  }
}
