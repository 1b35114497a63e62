/** Many sessions at once on a pool of waiting sandboxes. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { WARM_MB } from "../../../src/services/sessions/warm-pool.ts";
import type { Installation, Life } from "../../support/service/process-service.ts";
import { type Spread, spreadOf } from "./figures.ts";
import { placeOf, stopWhole } from "./places.ts";
import { untilReady, warmProject } from "./warm.ts";

const LOOK_MS = 250;

/** In MiB. */
const available = (): number => {
  const meminfo = readFileSync("/proc/meminfo", "utf8");
  return Number(/^MemAvailable:\s+(\d+) kB$/m.exec(meminfo)?.[1]) / 1024;
};

/** How many sandboxes this machine's free memory can have at once, each counted as a waiting one is. */
export const sandboxesInMemory = (): number => Math.floor(available() / WARM_MB);

/** The pool that fits beside the sandboxes of all creates: those that start one of their own, and those that fill it again. */
export const poolFor = (pool: number, creates: number): number =>
  Math.max(0, Math.min(pool, sandboxesInMemory() - creates));

interface Created {
  readonly waited: boolean;
  readonly running: number;
}

/** Waits for one session's end of boot, and says how it came to run. */
const outcomeOf = async (life: Life, target: string): Promise<Created> => {
  for (;;) {
    const session = await life.call("GET", target);
    if (session["status"] === "failed")
      throw new Error(`a boot failed: ${JSON.stringify(session["failure"])}`);
    if (session["status"] === "running") {
      const { waited } = await life.call("GET", `${target}/sandbox`);
      const running = Date.parse(String(session["running_at"])) - Date.parse(String(session["created_at"]));
      return { waited: waited === true, running };
    }
    await delay(LOOK_MS);
  }
};

export interface PoolFigures {
  readonly pool: number;
  readonly wanted_pool: number;
  readonly creates: number;
  readonly claimed: Spread;
  readonly started: Spread;
}

/** So many creates at once, when the pool is full. @param pool as many wait; the service's budget is for as many */
export const createsAtOnce = async (
  installation: Installation,
  life: Life,
  { pool, wanted, creates }: { readonly pool: number; readonly wanted: number; readonly creates: number },
): Promise<PoolFigures> => {
  const { projectId, archive } = await warmProject(installation, life, pool);
  await untilReady(life, projectId, pool);
  const sessions = `/v1/projects/${projectId}/sessions`;
  const created = await Promise.all(Array.from({ length: creates }, () => life.call("POST", sessions, {})));
  const targets = created.map(({ id }) => `${sessions}/${String(id)}`);
  const outcomes = await Promise.all(targets.map((target) => outcomeOf(life, target)));
  await archive();
  await Promise.all(
    targets.map(async (target) => {
      const { id } = await life.call("GET", `${target}/sandbox`);
      await stopWhole(life, target, placeOf(String(id)));
    }),
  );
  const of = (waited: boolean): Spread =>
    spreadOf(outcomes.filter((outcome) => outcome.waited === waited).map(({ running }) => running));
  return { pool, wanted_pool: wanted, creates, claimed: of(true), started: of(false) };
};
