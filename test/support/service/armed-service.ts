/**
 * The real service, killed at a fault point and started again on the same data directory and port. Its simulated
 * sandboxes end with the process, so each life finds its sessions lost and starts waiting fires in their place.
 * Recovery runs only at the start: leftovers of a kill are found then, or never.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { FaultPoint } from "../../../src/store/ports/faults.ts";
import { Installation, type Life } from "./process-service.ts";

const LOOK_MS = 100;
const LOOKS_MAX = 100;

/** The account's cap. It is small, so that few sessions fill it. */
export const CAP = 3;
const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "simulated",
  PLATFORM_TIER_CAPS: JSON.stringify({ free: CAP }),
  PLATFORM_RECOVERY_INTERVAL_MS: "3600000",
} as const;

export class ArmedService {
  readonly installation: Installation;
  readonly #settings: Readonly<Record<string, string>>;
  #life: Life;
  #isUp = true;

  private constructor(installation: Installation, settings: Readonly<Record<string, string>>, life: Life) {
    this.installation = installation;
    this.#settings = settings;
    this.#life = life;
  }

  /** @param more settings of all its lives. */
  static async open(more: Readonly<Record<string, string>> = {}): Promise<ArmedService> {
    const installation = await Installation.open();
    const settings = { ...SETTINGS, ...more };
    return new ArmedService(installation, settings, await installation.start(settings, "armed"));
  }

  /** The running life, or the last one. */
  get life(): Life {
    return this.#life;
  }

  /**
   * Kills the service at the point's next pass and starts it again.
   *
   * @returns once it is armed: its output before its death, with the signal, and a promise for its restart.
   */
  async arm(
    point: FaultPoint,
  ): Promise<{ readonly died: Promise<readonly unknown[]>; readonly restarted: Promise<void> }> {
    const { reached, died } = await this.#life.arm({ point, signal: "SIGKILL" });
    const restarted = died.then(async () => {
      this.#isUp = false;
      await this.start("armed");
    });
    // A waiting caller gets the error of a failed start.
    restarted.catch(() => undefined);
    return { died: Promise.all([reached, died]), restarted };
  }

  /** Kills it now. @returns when it runs again. */
  async kill(): Promise<void> {
    this.#isUp = false;
    await this.#life.end("SIGKILL");
    await this.start("armed");
  }

  /** Starts the next life on the port of the former one. */
  async start(program: "plain" | "armed"): Promise<void> {
    const { port } = new URL(this.#life.url);
    this.#life = await this.installation.start({ ...this.#settings, PLATFORM_PORT: port }, program);
    this.#isUp = true;
  }

  /** Shuts it down cleanly. @returns its exit code, and the remaining processes of all its lives. */
  async end(): Promise<{ readonly code: number | null; readonly left: readonly number[] }> {
    this.#isUp = false;
    const code = await this.#life.end("SIGTERM");
    // A process that was killed with it may need a moment on a busy machine.
    for (let look = 0; look < LOOKS_MAX && this.installation.processes().length > 0; look += 1)
      // oxlint-disable-next-line no-await-in-loop -- one look after the other
      await delay(LOOK_MS);
    return { code, left: this.installation.processes() };
  }

  /** Cleans up everything, also after a failure half-way. */
  async close(): Promise<void> {
    if (this.#isUp) await this.end();
    await this.installation.close();
  }
}
