/** The faults of a service under load, and their repair. Each completes when the service takes requests again. */
import { closeSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { identify } from "../../src/sandbox/machine/processes.ts";
import { execute, exhaustLog } from "./tables.ts";
import type { FaultyService } from "./installation.ts";
import type { Fault } from "./trial.ts";
import { WAIT_MS } from "../support/patience.ts";

/** How many kills are followed by one while the service starts. */
const KILLED_AGAIN_SHARE = 0.3;
const LOOK_MS = 20;
/** A service that does not answer for longer never will. */
const RECOVERY_MS = WAIT_MS;

/** Kill -9 at any moment, sometimes once more while it starts. */
export const killed =
  (service: FaultyService): Fault =>
  async (random) => {
    await delay(random.between(0, 500));
    await service.life.end("SIGKILL");
    while (random.chance(KILLED_AGAIN_SHARE)) await service.startAndKill(random.between(0, 2_000));
    return service.start();
  };

/** Completes when the service says that it is ready. @returns how long that took, ms. */
const readyAgain = async (service: FaultyService): Promise<number> => {
  const begun = performance.now();
  for (;;) {
    const answer = await fetch(`${service.url}/readyz`).catch(() => null);
    await answer?.text();
    if (answer?.ok === true) return performance.now() - begun;
    if (performance.now() - begun > RECOVERY_MS)
      throw new Error(`not ready after ${RECOVERY_MS} ms:\n${service.log.slice(-4_000)}`);
    await delay(LOOK_MS);
  }
};

/** Processes of the server: those that the postmaster has started. */
const backendsOf = (postmaster: number): readonly number[] =>
  readdirSync("/proc")
    .map(Number)
    .filter(Number.isInteger)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === postmaster;
      } catch {
        return false; // It ended while it was looked at.
      }
    });

/** Ends the embedded server by a signal, and waits until it is gone: until then the service may say that it is ready. */
const ended =
  (signal: NodeJS.Signals) =>
  async ({ postmaster }: FaultyService): Promise<void> => {
    process.kill(postmaster, signal);
    while (identify(postmaster) !== null) await delay(LOOK_MS);
  };

/** What may befall a Postgres; the embedded one is started again by the service. */
const POSTGRES_FAULTS = {
  "fast shutdown": ended("SIGINT"),
  "immediate shutdown": ended("SIGQUIT"),
  "kill -9 of the postmaster": ended("SIGKILL"),
  "kill -9 of a backend": async ({ postmaster }: FaultyService) => {
    const backend = backendsOf(postmaster).at(-1) ?? 0;
    process.kill(backend, "SIGKILL");
    while (identify(backend) !== null) await delay(LOOK_MS);
  },
  "every session ended": ({ databaseUrl }: FaultyService) =>
    execute(
      databaseUrl,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'platform'",
    ),
} as const;
type PostgresFault = keyof typeof POSTGRES_FAULTS;

/** The database goes away under the service, in one way after the other, and comes back. */
export const databaseLost = (service: FaultyService): Fault => {
  const kinds = Object.keys(POSTGRES_FAULTS) as PostgresFault[];
  let round = 0;
  return async (random) => {
    await delay(random.between(0, 300));
    const kind = kinds[round % kinds.length] ?? "immediate shutdown";
    round += 1;
    await POSTGRES_FAULTS[kind](service);
    return readyAgain(service);
  };
};

/** Longer than any lock of its own is left to it: a transaction is ended after 5 s, a statement after 15. */
const FROZEN_MS = { min: 6_000, max: 17_000 } as const;

/** How often it is the other node that stands still. */
const OTHER_SHARE = 0.3;

/**
 * A node stands still and goes on. Where it is the one with the sandboxes, the other one stops some of its sessions meanwhile:
 * what it remembers of them is no longer so.
 */
export const frozen =
  (service: FaultyService, other: FaultyService): Fault =>
  async (random, load) => {
    await delay(random.between(0, 300));
    const still = random.chance(OTHER_SHARE) ? other : service;
    still.life.signal("SIGSTOP");
    const stops = still === service ? random.between(0, 2) : 0;
    for (let stop = 0; stop < stops; stop += 1) await load.stopThrough(other, random);
    await delay(random.between(FROZEN_MS.min, FROZEN_MS.max));
    still.life.signal("SIGCONT");
    return readyAgain(still);
  };

const BLOCK_BYTES = 64 * 1024;

/** Takes every free byte of the file system below the directory. */
const fill = (ballast: string): void => {
  const file = openSync(ballast, "w");
  const block = Buffer.alloc(BLOCK_BYTES);
  try {
    for (const size of [BLOCK_BYTES, 4096]) {
      try {
        for (;;) writeSync(file, block, 0, size);
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
      }
    }
  } finally {
    closeSync(file);
  }
};

const FULL_MS = { min: 1_000, max: 5_000 } as const;

/**
 * The data directory's disk is full for a while: the database ends because it has no space, and every start of it
 * does as well.
 */
export const diskFull =
  (service: FaultyService): Fault =>
  async (random) => {
    const ballast = path.join(service.dataDir, "ballast");
    await delay(random.between(0, 300));
    fill(ballast);
    await exhaustLog(service.databaseUrl);
    await delay(random.between(FULL_MS.min, FULL_MS.max));
    rmSync(ballast);
    return readyAgain(service);
  };
