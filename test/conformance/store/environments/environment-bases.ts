/** Conformance: what the tags of base images stand for, and which of them are due. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { EnvironmentBases } from "../../../../src/store/ports/projects/environment-bases.ts";
import { EnvironmentBuilds } from "../../../../src/store/ports/projects/environment-builds.ts";
import {
  BUILT,
  endedBuild,
  newBuild,
  NOT_BUILT,
  stepBuild,
} from "../../../support/world/environment-builds.ts";
import { addProject, makeWorld, NOON } from "../../../support/world/world.ts";
import { type Check } from "../fixture.ts";

const [A, B, C] = ["images.example.com/a:1", "images.example.com/b:1", "images.example.com/c:1"] as const;
const D1 = `sha256:${"1".repeat(64)}`;
const D2 = `sha256:${"2".repeat(64)}`;
const HOUR = 3_600_000;

const names = (rows: readonly { readonly reference: string }[]) =>
  rows.map(({ reference }) => reference).toSorted();

const checkLooks = (check: Check): void => {
  check(
    "is taken once until its look must have ended, then again",
    Effect.gen(function* () {
      const { take, get } = yield* EnvironmentBases;
      const references = [B, A, C];
      const asked = { references, now: NOON, until: NOON + 1000, limit: 2 };
      const [one, two] = yield* Effect.all([take(asked), take(asked)], { concurrency: 2 });
      // Two at one moment may want the same ones. Then one of them gets none, and what is left is for the next.
      const rest = yield* take(asked);
      expect(names([...one, ...two, ...rest])).toEqual([A, B, C]);
      expect(yield* take(asked)).toEqual([]);
      expect(names(yield* take({ ...asked, now: NOON + 1000, limit: 9 }))).toEqual([A, B, C]);
      expect(yield* get([B, A, "images.example.com/unknown:1"])).toEqual(
        [A, B].map((reference) => ({
          reference,
          digest: null,
          lookedUpAt: null,
          triedAt: NOON + 1000,
          failures: 0,
          problem: null,
          dueAt: NOON + 1000,
        })),
      );
      expect(yield* get([])).toEqual([]);
    }),
  );

  check(
    "keeps its digest while its registry does not answer, and counts the tries",
    Effect.gen(function* () {
      const { found, get, missed, take } = yield* EnvironmentBases;
      // A registry that never answered has no digest.
      yield* take({ references: [B], now: NOON, until: NOON + 1, limit: 1 });
      yield* missed({ reference: B, problem: "away", now: NOON, dueAt: NOON + HOUR });
      yield* found({ reference: A, digest: D1, now: NOON, dueAt: NOON + HOUR });
      for (const now of [NOON + 1, NOON + 2])
        yield* missed({ reference: A, problem: "away", now, dueAt: now + 10 });
      const bad = { problem: "away", triedAt: NOON + 2, failures: 2, dueAt: NOON + 12 };
      expect(yield* get([A, B])).toEqual([
        { reference: A, digest: D1, lookedUpAt: NOON, ...bad },
        {
          reference: B,
          digest: null,
          lookedUpAt: null,
          problem: "away",
          triedAt: NOON,
          failures: 1,
          dueAt: NOON + HOUR,
        },
      ]);
      expect(yield* take({ references: [A], now: NOON + 12, until: NOON + 99, limit: 1 })).toEqual([
        { reference: A, failures: 2 },
      ]);
      yield* found({ reference: A, digest: D2, now: NOON + 20, dueAt: NOON + HOUR });
      const good = { reference: A, digest: D2, lookedUpAt: NOON + 20, triedAt: NOON + 20 };
      expect(yield* get([A])).toEqual([{ ...good, failures: 0, problem: null, dueAt: NOON + HOUR }]);
    }),
  );

  check(
    "is what the latest look found, in whatever order looks are written",
    Effect.gen(function* () {
      const { found, get, missed, prune } = yield* EnvironmentBases;
      yield* found({ reference: A, digest: D2, now: NOON + 10, dueAt: NOON + HOUR });
      yield* found({ reference: A, digest: D1, now: NOON, dueAt: NOON + 1 });
      yield* missed({ reference: A, problem: "away", now: NOON + 5, dueAt: NOON + 6 });
      yield* missed({ reference: C, problem: "unknown to the store", now: NOON, dueAt: NOON });
      expect(yield* get([A, C])).toEqual([
        expect.objectContaining({ reference: A, digest: D2, problem: null, dueAt: NOON + HOUR }),
      ]);
      yield* prune(NOON + 10);
      expect(yield* get([A])).toHaveLength(1);
      yield* prune(NOON + 11);
      expect(yield* get([A])).toEqual([]);
    }),
  );
};

const checkBuilds = (check: Check): void => {
  check(
    "is on the record of a build until the build is over",
    Effect.gen(function* () {
      const { projectId } = yield* makeWorld(5);
      const { get, noteBases } = yield* EnvironmentBuilds;
      const id = yield* newBuild(projectId);
      const bases = [
        { reference: A, digest: D1 },
        { reference: B, digest: null },
      ];
      yield* noteBases(id, bases);
      expect(yield* get(id)).toMatchObject({ bases });
      yield* stepBuild(id, [BUILT]);
      yield* noteBases(id, []);
      expect(yield* get(id)).toMatchObject({ bases });
    }),
  );

  check(
    "counts for the newest ready build of each project on a node",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const { newestReady, forgetImages } = yield* EnvironmentBuilds;
      const other = yield* addProject(world);
      const former = yield* endedBuild(projectId, BUILT, { now: NOON });
      const newest = yield* endedBuild(projectId, BUILT, { now: NOON + 1 });
      yield* endedBuild(projectId, NOT_BUILT, { now: NOON + 2 });
      yield* endedBuild(projectId, BUILT, { now: NOON + 3, nodeId: "node-2" });
      yield* newBuild(projectId, { now: NOON + 4 });
      const others = yield* endedBuild(other, BUILT, { now: NOON });
      const ids = Effect.map(newestReady("node-1"), (rows) => rows.map(({ id }) => id).toSorted());
      expect(yield* ids).toEqual([newest, others].toSorted());
      yield* forgetImages([newest, others]);
      expect(yield* ids).toEqual([former]);
      expect(yield* newestReady("node-3")).toEqual([]);
    }),
  );
};

export const checkEnvironmentBases = (check: Check): void => {
  describe("the tag of a base image", () => {
    checkLooks(check);
    checkBuilds(check);
  });
};
