/**
 * The real service under load through hundreds of faults: kill -9, a database that goes away, a node that stands still, a full
 * disk. Real sandboxes, the real database; everything is looked at from outside.
 */
import { randomBytes } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { describe, expect, it } from "vitest";
import { freshDatabase } from "../support/postgres/postgres.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { databaseLost, diskFull, frozen, killed } from "./faults.ts";
import { FaultyService } from "./installation.ts";
import type { Load } from "./load.ts";
import { DEEP_ROUNDS, seedOfRun } from "./rounds.ts";
import { Trial, type Fault } from "./trial.ts";

const seed = seedOfRun();

interface Case {
  readonly service: FaultyService;
  readonly others?: readonly FaultyService[];
  readonly fault: Fault;
  readonly rounds: number;
}

/** Runs all rounds on a started service, prints what was measured, and expects that nothing was amiss. @returns its load. */
const survives = async ({ service, others = [], fault, rounds }: Case): Promise<Load> => {
  const trial = new Trial({ service, seed, others });
  try {
    await service.furnish();
    await trial.begin();
    await trial.rounds(rounds, fault);
    process.stderr.write(`${trial.summary}\n`);
    expect(trial.violations).toEqual([]);
    return trial.load;
  } finally {
    await trial.load.end();
  }
};

/** Closes all of them, even if the work with them failed. */
const using = async (services: readonly FaultyService[], work: () => Promise<void>): Promise<void> => {
  try {
    await work();
  } finally {
    for (const service of services) await service.close();
  }
};

describe.runIf(sandboxesStartHere)(`a service under load, REAL_FAULTS_SEED=${seed}`, () => {
  it("loses nothing and leaves nothing behind when it is killed at any moment [I1, I4, I9, I15, I17, I19]", async () => {
    const service = await FaultyService.make();
    await using([service], async () => {
      await service.start();
      await survives({ service, fault: killed(service), rounds: DEEP_ROUNDS.kills });
    });
  });

  it("loses nothing and leaves nothing behind when its database goes away [I1, I4, I9, I19]", async () => {
    const service = await FaultyService.make();
    await using([service], async () => {
      await service.start();
      await survives({ service, fault: databaseLost(service), rounds: DEEP_ROUNDS.postgres });
    });
  });

  // Sessions that the second node admits fail because their branch is on the first node, and the second node does not
  // look for lost sandboxes of the first. It tests the decisions of two nodes about one account, while one of them
  // stands still.
  it("has no late effect when it stands still beside another node [R11, I1, I4, I9, I18]", async () => {
    const scope = Effect.runSync(Scope.make());
    const shared = {
      DATABASE_URL: await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope)),
      PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
    };
    const [service, other] = [
      await FaultyService.make(shared),
      await FaultyService.make({ ...shared, PLATFORM_RECOVERY_INTERVAL_MS: "3600000" }),
    ];
    await using([service, other], async () => {
      await service.start();
      await other.start();
      await survives({
        service,
        others: [other],
        fault: frozen(service, other),
        rounds: DEEP_ROUNDS.freezes,
      });
    });
    await Effect.runPromise(Scope.close(scope, Exit.void));
  });
});

/** Holds a new database and its log, with room for what a trial makes. */
const DISK = "400m";

describe.runIf(sandboxesStartHere && process.getuid?.() === 0)(
  `a service on a small disk, which only root can mount, REAL_FAULTS_SEED=${seed}`,
  () => {
    it("loses nothing that it accepted when the disk is full, and continues when there is room [I1, I4, I9, I19]", async () => {
      const service = await FaultyService.make({}, { disk: DISK });
      await using([service], async () => {
        await service.start();
        const load = await survives({ service, fault: diskFull(service), rounds: DEEP_ROUNDS.fills });
        expect(load.unavailable).toBeGreaterThan(0);
      });
    });
  },
);
