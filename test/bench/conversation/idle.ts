/** What live sessions cost that rest, and their readers. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Life } from "../../support/service/process-service.ts";
import { childrenOf, cpuMsOf } from "../webhook/processes.ts";
import { spread, type Spread } from "./figures.ts";

/** Idle actors leave memory after this time. The pause before a measurement is longer. */
const ACTOR_IDLE_MS = 5_000;
const SETTLE_MS = 6_000;

export const settingsFor = (sessions: number) => ({
  PLATFORM_SANDBOX_PROVIDER: "simulated",
  PLATFORM_DEFAULT_TIER: "enterprise",
  PLATFORM_TIER_CAPS: JSON.stringify({ enterprise: sessions + 1 }),
  PLATFORM_ACTOR_IDLE_MS: String(ACTOR_IDLE_MS),
});

const pssOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1]) * 1024;

/** CPU time so far, ms: of the service alone, and of its Postgres. */
export const cpuOf = (pid: number) => {
  const postgres = childrenOf(pid).reduce((sum, child) => sum + cpuMsOf(child), 0);
  return { service: cpuMsOf(pid) - postgres, postgres };
};

export interface Windows {
  readonly windows: number;
  readonly windowMs: number;
}

export interface Rest {
  /** CPU seconds a minute. */
  readonly service: Spread;
  readonly postgres: Spread;
  readonly heapMb: number;
  readonly pssMb: number;
}

const aMinute = (ms: number, windowMs: number): number => (ms / 1000) * (60_000 / windowMs);

/** The service at rest. Memory is taken after a collection. */
export const restOf = async (life: Life, { windows, windowMs }: Windows): Promise<Rest> => {
  await delay(SETTLE_MS);
  const [service, postgres]: [number[], number[]] = [[], []];
  for (let number = 0; number < windows; number += 1) {
    const before = cpuOf(life.pid);
    await delay(windowMs);
    const after = cpuOf(life.pid);
    service.push(aMinute(after.service - before.service, windowMs));
    postgres.push(aMinute(after.postgres - before.postgres, windowMs));
  }
  await life.memory();
  const { heapUsed } = await life.memory();
  return {
    service: spread(service),
    postgres: spread(postgres),
    heapMb: heapUsed / 1e6,
    pssMb: pssOf(life.pid) / 1e6,
  };
};

export interface Each {
  /** CPU time a minute, ms. */
  readonly serviceMs: number;
  readonly postgresMs: number;
  readonly heapKb: number;
  readonly pssKb: number;
}

const rounded = (value: number): number => Math.round(value * 10) / 10;

/** What one of so many more costs. CPU time is from the medians. */
export const eachOf = (before: Rest, after: Rest, more: number): Each => ({
  serviceMs: rounded(((after.service[1] - before.service[1]) * 1000) / more),
  postgresMs: rounded(((after.postgres[1] - before.postgres[1]) * 1000) / more),
  heapKb: rounded(((after.heapMb - before.heapMb) * 1000) / more),
  pssKb: rounded(((after.pssMb - before.pssMb) * 1000) / more),
});
