/**
 * Sends webhooks to the real service while it is killed again and again, and reads its state at the end. Its simulated
 * sandboxes end with the process, so each life finds its sessions lost and starts waiting fires in their place.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, vi } from "vitest";
import { WAIT_MS } from "../patience.ts";
import { Installation, type Life } from "../service/process-service.ts";
import type { FireRow, Ledger, SessionRow } from "./webhook-ledger.ts";
import { WebhookSender, type RequestLog } from "./webhook-sender.ts";

const SECRET = "It's a Secret to Everybody";
const SLUG = "on-push";
const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "simulated",
  PLATFORM_TIER_CAPS: '{"free": 50}',
  PLATFORM_QUEUE_MAX: "1000000",
} as const;
/** Kills happen during this part of the traffic, so that each one hits requests under way. */
const KILLED_SHARE = 0.9;

export interface Traffic {
  readonly deliveries: number;
  readonly kills: number;
  readonly seed: number;
}

export interface Survival {
  readonly log: RequestLog;
  /** Requests that the kills interrupted. */
  readonly unanswered: number;
}

/** A random seed, or the one in WEBHOOK_KILLS_SEED, to repeat a run. */
export const seedOfRun = (): number =>
  Number(process.env["WEBHOOK_KILLS_SEED"] ?? Math.trunc(performance.timeOrigin + performance.now()));

/** Xorshift: the same seed gives the same numbers, from 0 up to 1. */
const drawing = (seed: number): (() => number) => {
  let state = seed | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
};

/** A service that is killed under traffic. */
export class KilledService {
  readonly #installation: Installation;
  readonly #projectId: string;
  #life: Life;
  #isUp = true;

  private constructor(installation: Installation, life: Life, projectId: string) {
    this.#installation = installation;
    this.#life = life;
    this.#projectId = projectId;
  }

  static async open(): Promise<KilledService> {
    const installation = await Installation.open();
    const life = await installation.start(SETTINGS);
    const projectId = await life.project(installation.sample);
    await life.call("PUT", `/v1/projects/${projectId}/secrets/GITHUB_WEBHOOK_SECRET`, { value: SECRET });
    return new KilledService(installation, life, projectId);
  }

  /**
   * Sends all of it through the kills. Each kill happens at a random point, and the service then starts again on the
   * same port.
   */
  async survive({ deliveries, kills, seed }: Traffic): Promise<Survival> {
    const random = drawing(seed);
    let up: Promise<unknown> = Promise.resolve();
    const sender = new WebhookSender({
      url: `${this.#life.url}/v1/webhooks/projects/${this.#projectId}/${SLUG}`,
      secret: SECRET,
      deliveries,
      duplicateShare: 0.3,
      burst: 50,
      concurrency: 64,
      random,
      whenUp: () => up,
    });
    const points = Array.from({ length: kills }, () => Math.ceil(random() * KILLED_SHARE * sender.planned));
    const killing = async (): Promise<void> => {
      for (const point of points.toSorted((a, b) => a - b)) {
        await sender.reached(point);
        // At any time between a request's arrival and its answer.
        await delay(random() * sender.latencyMs);
        const dead = this.#kill();
        up = dead.then(() => this.#start());
        await up;
      }
    };
    const [log] = await Promise.all([sender.send(), killing()]);
    return { log, unanswered: sender.unanswered };
  }

  async #kill(): Promise<void> {
    this.#isUp = false;
    await this.#life.end("SIGKILL");
  }

  async #start(): Promise<void> {
    const { port } = new URL(this.#life.url);
    this.#life = await this.#installation.start({ ...SETTINGS, PLATFORM_PORT: port });
    this.#isUp = true;
  }

  /**
   * The API's view. Fires only move forward: if none moved between two readings, the state in between belongs to both.
   */
  async ledger(): Promise<Ledger & { readonly waiting: number }> {
    const project = `/v1/projects/${this.#projectId}`;
    let fires = await this.#life.everyPage<FireRow>(`${project}/fires`, "fires");
    for (;;) {
      const sessions = await this.#life.everyPage<SessionRow>(`${project}/sessions`, "sessions");
      const { account } = (await this.#life.call("GET", "/v1/me")) as { account: { queued_fires: number } };
      const again = await this.#life.everyPage<FireRow>(`${project}/fires`, "fires");
      if (JSON.stringify(again) === JSON.stringify(fires))
        return { fires, sessions, waiting: account.queued_fires };
      fires = again;
    }
  }

  /** Shuts the service down cleanly. @returns its exit code, and the remaining processes of all its lives. */
  async end(): Promise<{ readonly code: number | null; readonly left: readonly number[] }> {
    this.#isUp = false;
    const code = await this.#life.end("SIGTERM");
    // A git of a life that was killed ends by itself when it finds its pipes closed.
    const isGone = () => expect(this.#installation.processes()).toEqual([]);
    await vi.waitFor(isGone, { timeout: WAIT_MS, interval: 100 }).catch(() => undefined);
    return { code, left: this.#installation.processes() };
  }

  /** Cleans up everything, also after a failure half-way. */
  async close(): Promise<void> {
    if (this.#isUp) await this.#life.end("SIGTERM");
    await this.#installation.close();
  }
}
