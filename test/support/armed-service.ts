/**
 * The real service, killed at a fault point and started again on the same data directory and port, looked at from outside
 * alone. Sandboxes are simulated: they go with the process, so that each life finds its sessions lost and starts waiting
 * fires in their place. Between two starts nothing looks for what was left undone: what a kill leaves is found at the start,
 * or not at all.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { vi } from "vitest";
import { instantsBetween, type CronSchedule } from "../../src/domain/cron.ts";
import type { FaultPoint } from "../../src/store/faults.ts";
import { gitOk } from "../git/git-client.ts";
import { Installation, type Death, type Json, type Life } from "./process-service.ts";
import type { FireRow, Ledger, SessionRow } from "./webhook-ledger.ts";

/** The account's cap: small, so that few sessions fill it. */
export const CAP = 3;
const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "simulated",
  PLATFORM_TIER_CAPS: JSON.stringify({ free: CAP }),
  PLATFORM_RECOVERY_INTERVAL_MS: "3600000",
} as const;
const LIVE = new Set(["provisioning", "running"]);

/** A row of the ledger as it is looked at here. */
export interface CronRow extends FireRow {
  readonly kind: string;
  readonly scheduled_for: string | null;
}
interface Session extends SessionRow {
  readonly status: string;
  readonly trigger_slug: string | null;
}

/** Asks again until the check holds; the bound ends a hung test. */
export const eventually = <A>(check: () => Promise<A>): Promise<A> =>
  vi.waitFor(check, { timeout: 30_000, interval: 25 });

/** What two readings one after the other agree in: what lies between them belongs to both. */
const steady = async <A>(read: () => Promise<A>): Promise<A> => {
  let reading = await read();
  for (;;) {
    const again = await read();
    if (JSON.stringify(again) === JSON.stringify(reading)) return reading;
    reading = again;
  }
};

export class ArmedService {
  readonly #installation: Installation;
  #life: Life;
  #isUp = true;

  private constructor(installation: Installation, life: Life) {
    this.#installation = installation;
    this.#life = life;
  }

  static async open(): Promise<ArmedService> {
    const installation = await Installation.open();
    return new ArmedService(installation, await installation.start(SETTINGS, "armed"));
  }

  get url(): string {
    return this.#life.url;
  }

  call(method: string, target: string, body?: Json): Promise<Json> {
    return this.#life.call(method, target, body);
  }

  /** A hosted project whose repository has this manifest. @returns its id. */
  async project(manifest: string): Promise<string> {
    const directory = path.join(path.dirname(this.#installation.sample), crypto.randomUUID());
    mkdirSync(directory);
    writeFileSync(path.join(directory, "platform.toml"), manifest);
    await gitOk(directory, "init", "--quiet", "--initial-branch=main");
    await gitOk(directory, "add", ".");
    await gitOk(directory, "commit", "--quiet", "-m", "Begin");
    return this.#life.project(directory);
  }

  /**
   * Has the service die at the point's next pass and start again.
   *
   * @returns once it is armed: how it died, and when it is up again.
   */
  async arm(
    point: FaultPoint,
  ): Promise<{ readonly died: Promise<Death>; readonly restarted: Promise<void> }> {
    const { died } = await this.#life.arm(point);
    const restarted = died.then(async () => {
      this.#isUp = false;
      await this.start("armed");
    });
    // Whoever waits for it hears of a start that failed.
    restarted.catch(() => undefined);
    return { died, restarted };
  }

  /** Starts the next life on the port of the former one. */
  async start(program: "plain" | "armed"): Promise<void> {
    const { port } = new URL(this.#life.url);
    this.#life = await this.#installation.start({ ...SETTINGS, PLATFORM_PORT: port }, program);
    this.#isUp = true;
  }

  /** Ends it in order. @returns its exit code, and the processes that are left of all its lives. */
  async end(): Promise<{ readonly code: number | null; readonly left: readonly number[] }> {
    this.#isUp = false;
    const code = await this.#life.end("SIGTERM");
    return { code, left: this.#installation.processes() };
  }

  sessions(projectId: string): Promise<readonly Session[]> {
    return this.#life.everyPage<Session>(`/v1/projects/${projectId}/sessions`, "sessions");
  }

  fires(projectId: string): Promise<readonly CronRow[]> {
    return this.#life.everyPage<CronRow>(`/v1/projects/${projectId}/fires`, "fires");
  }

  /** What webhooks left, and what was started for them. */
  ledger(projectId: string): Promise<Ledger> {
    return steady(async () => {
      const fires = await this.fires(projectId);
      const sessions = await this.sessions(projectId);
      return { fires, sessions: sessions.filter(({ trigger_slug: slug }) => slug !== null) };
    });
  }

  /** The account's counters, and what they count. */
  counters(projectIds: readonly string[]) {
    return steady(async () => {
      const { account } = (await this.call("GET", "/v1/me")) as {
        account: { active_sessions: number; queued_fires: number };
      };
      const { queue } = (await this.call("GET", "/v1/queue")) as { queue: readonly unknown[] };
      const sessions = (await Promise.all(projectIds.map((id) => this.sessions(id)))).flat();
      const fires = (await Promise.all(projectIds.map((id) => this.fires(id)))).flat();
      return {
        said: { active: account.active_sessions, queued: account.queued_fires },
        counted: {
          active: sessions.filter(({ status }) => LIVE.has(status)).length,
          queued: queue.length,
        },
        waiting: fires.filter(({ status }) => status === "queued").length,
      };
    });
  }

  /** Takes every slot. */
  async fill(projectId: string): Promise<readonly string[]> {
    const made: string[] = [];
    for (let slot = 0; slot < CAP; slot += 1) {
      const { id } = await this.call("POST", `/v1/projects/${projectId}/sessions`, {});
      made.push(String(id));
    }
    return made;
  }

  /** Stops what is live, and what starts in its place, until nothing waits and nothing is live. */
  empty(projectId: string): Promise<void> {
    return eventually(async () => {
      for (const { id, status } of await this.sessions(projectId))
        if (LIVE.has(status)) await this.call("POST", `/v1/projects/${projectId}/sessions/${id}/stop`);
      const { account } = (await this.call("GET", "/v1/me")) as {
        account: { active_sessions: number; queued_fires: number };
      };
      if (account.active_sessions + account.queued_fires > 0) throw new Error(JSON.stringify(account));
    });
  }

  /** Clears everything away, also after a failure half-way. */
  async close(): Promise<void> {
    if (this.#isUp) await this.end();
    await this.#installation.close();
  }
}

/**
 * Holds the rows of a cron trigger against its expression: threats.md I2 and I3.
 *
 * @returns a sentence for each instant from the first row's up to `untilMs` that has not exactly one row.
 */
export const instantsUnaccounted = (
  rows: readonly CronRow[],
  schedule: CronSchedule,
  range: { readonly firstMs: number; readonly untilMs: number },
): readonly string[] => {
  const counts = new Map<string, number>();
  for (const { kind, scheduled_for: at } of rows)
    if (kind === "cron" && at !== null) counts.set(at, (counts.get(at) ?? 0) + 1);
  const found: string[] = [];
  for (const instant of instantsBetween(schedule, "UTC", range)) {
    const at = new Date(instant).toISOString();
    const count = counts.get(at) ?? 0;
    if (count !== 1) found.push(`${at} has ${count} rows`);
  }
  return found;
};
