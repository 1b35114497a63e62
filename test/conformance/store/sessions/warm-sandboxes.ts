/** Conformance: sandboxes that wait for a session (W1 to W3 of store/ports/sessions/warm-sandboxes.ts). */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import type { StoreError } from "../../../../src/store/ports/journal.ts";
import { Sandboxes } from "../../../../src/store/ports/sessions/sandboxes.ts";
import { Secrets } from "../../../../src/store/ports/projects/secrets.ts";
import {
  ABANDONED_MS,
  type WantedBy,
  WarmSandboxes,
} from "../../../../src/store/ports/sessions/warm-sandboxes.ts";
import { admitSession, openSandbox, tellSession } from "../../../support/world/sessions.ts";
import { addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";
import type { Check } from "../fixture.ts";

const NODE = "node-1";
const MADE = { recipe: "recipe", secrets: { revision: 3, versions: { KEY: 2 } } };

interface Wanted {
  readonly wantedBy?: WantedBy;
  readonly wantedUntil?: number;
  readonly createdAt?: number;
  readonly nodeId?: string;
  readonly atMost?: number;
}

const add = Effect.fnUntraced(function* ({ projectId }: World, wanted: Wanted = {}) {
  const id = randomUUID();
  const added = yield* (yield* WarmSandboxes).add({
    id,
    projectId,
    nodeId: NODE,
    wantedBy: wanted.wantedUntil === undefined ? "manifest" : "person",
    wantedUntil: null,
    createdAt: NOON,
    atMost: 100,
    ...wanted,
  });
  return added ? id : null;
});

/** One that can be claimed. */
const addReady = Effect.fnUntraced(function* (world: World, wanted: Wanted = {}) {
  const id = yield* add(world, wanted);
  if (id === null) return yield* Effect.die("not added");
  expect(yield* (yield* WarmSandboxes).ready(id, MADE)).toBe(true);
  return id;
});

const claim = Effect.fnUntraced(function* ({ projectId }: World, sessionId: string, isPersons = true) {
  const request = { projectId, sessionId, nodeId: NODE, isPersons, now: NOON };
  return yield* (yield* WarmSandboxes).claim(request);
});

/**
 * 50 sandboxes that wait, and a secret that changes. 25 of them are ready before, and those that are still unclaimed then are
 * replaced, as the duty does it. The others were starting, and are replaced too.
 */
const rotation = Effect.fnUntraced(function* (world: World) {
  const { put, nextVersion, current } = yield* Secrets;
  const { ready, remove } = yield* WarmSandboxes;
  const made = new Map<string, typeof MADE>();
  const change = Effect.gen(function* () {
    const { projectId, userId } = world;
    const version = yield* nextVersion(projectId, "KEY");
    yield* put({ projectId, name: "KEY", version, envelope: Uint8Array.from([1]) }, { userId, now: NOON });
  });
  const start = Effect.gen(function* () {
    const id = yield* add(world);
    if (id === null) return yield* Effect.die("not added");
    const { revision, sealed } = yield* current(world.projectId);
    const secrets = { revision, versions: { KEY: sealed[0]?.version ?? 0 } };
    made.set(id, { recipe: `revision ${revision}`, secrets });
    return id;
  });
  const toReady = (id: string) => ready(id, made.get(id) ?? MADE);
  yield* change;
  const early = yield* Effect.forEach(Array.from({ length: 25 }), () => start);
  const late = yield* Effect.forEach(Array.from({ length: 25 }), () => start);
  yield* Effect.forEach(early, toReady);
  const begun = yield* Latch.make(false);
  let isOver = false;
  const run = Effect.gen(function* () {
    yield* begun.await;
    yield* change;
    for (const id of [...early, ...late]) if (yield* remove(id)) yield* toReady(yield* start);
    isOver = true;
  });
  return { made, begin: begun.open, run, isOver: () => isOver };
});

export const checkWarmSandboxes = (check: Check): void => {
  describe("a sandbox that waits for a session", () => {
    check(
      "is claimed when it is ready, the oldest first, and again by the same session",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const [first, second] = [yield* admitSession(world), yield* admitSession(world)];
        yield* add(world, { createdAt: NOON - 9 });
        expect(yield* claim(world, first)).toBe(null);
        const newer = yield* addReady(world, { createdAt: NOON + 1 });
        const older = yield* addReady(world, { createdAt: NOON });
        expect(yield* claim(world, first)).toBe(older);
        expect(yield* claim(world, first)).toBe(older);
        expect(yield* claim(world, second)).toBe(newer);
      }),
    );

    check(
      "is not given again to a session that has taken it and was stopped before its boot",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const sessionId = yield* admitSession(world);
        const ready = [yield* addReady(world), yield* addReady(world)];
        const sandboxId = (yield* claim(world, sessionId)) ?? "";
        // Both have waited for the same time.
        expect(ready).toContain(sandboxId);
        expect(yield* claim(world, sessionId)).toBe(sandboxId);
        yield* tellSession(sessionId, { type: "branch.created", commit: "c".repeat(40), sandboxId });
        expect(yield* claim(world, sessionId)).toBe(null);
      }),
    );

    check(
      "is claimed once, whatever comes at once (200 sessions for 50), with the secrets of its start, while a secret changes [E17] [E18]",
      Effect.gen(function* () {
        const world = yield* makeWorld(200);
        const rotated = yield* rotation(world);
        const sessions = yield* Effect.forEach(Array.from({ length: 200 }), () => admitSession(world));
        let claims = 0;
        /** All look once. Of those that find none, the first 100 look again until the last one is ready. */
        const persistent = (
          id: string,
          index: number,
        ): Effect.Effect<string | null, StoreError, WarmSandboxes> =>
          Effect.flatMap(claim(world, id), (sandboxId) => {
            if (sandboxId === null && index < 100 && !rotated.isOver())
              return Effect.andThen(Effect.yieldNow, persistent(id, index));
            if (sandboxId !== null && (claims += 1) === 10) return Effect.as(rotated.begin, sandboxId);
            return Effect.succeed(sandboxId);
          });
        const [claimed] = yield* Effect.all(
          [
            Effect.forEach(
              sessions,
              (id, index) => Effect.map(persistent(id, index), (found) => [id, found] as const),
              {
                concurrency: "unbounded",
              },
            ),
            rotated.run,
          ],
          { concurrency: "unbounded" },
        );
        const pairs = claimed.flatMap(([id, found]) => (found === null ? [] : [[id, found] as const]));
        expect(pairs.length).toBe(50);
        expect(new Set(pairs.map(([, id]) => id)).size).toBe(50);
        expect((yield* (yield* WarmSandboxes).unclaimed(NODE)).length).toBe(0);
        const { get, noteSecrets } = yield* Sandboxes;
        const revisions = new Set<number>();
        for (const [sessionId, id] of pairs) {
          yield* openSandbox(sessionId, NOON, id);
          const { recipe, secrets } = rotated.made.get(id) ?? MADE;
          revisions.add(secrets.revision);
          expect(yield* get(id)).toMatchObject({ warmRecipe: recipe });
          // Another revision is not the one on record.
          expect(yield* noteSecrets(id, secrets.revision + 1, secrets)).toBe(false);
          expect(yield* noteSecrets(id, secrets.revision, secrets)).toBe(true);
        }
        expect(revisions).toEqual(new Set([1, 2]));
      }),
    );

    check(
      "is of one project and one node, and one that a person asked for is not a trigger's",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const other = yield* addProject(world);
        yield* addReady({ ...world, projectId: other });
        yield* addReady(world, { nodeId: "node-2" });
        const asked = yield* addReady(world, { wantedUntil: NOON + 1000 });
        const sessionId = yield* admitSession(world);
        expect(yield* claim(world, sessionId, false)).toBe(null);
        expect(yield* claim(world, sessionId, true)).toBe(asked);
        const due = yield* addReady(world, { wantedBy: "trigger", wantedUntil: NOON + 1000 });
        expect(yield* claim(world, yield* admitSession(world), false)).toBe(due);
      }),
    );

    check(
      "is added up to a number for each project and node",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        expect(yield* add(world, { atMost: 1 })).not.toBe(null);
        expect(yield* add(world, { atMost: 1 })).toBe(null);
        expect(yield* add(world, { atMost: 1, nodeId: "node-2" })).not.toBe(null);
        expect(yield* add(world, { atMost: 2 })).not.toBe(null);
        const { add: addTo, countReady } = yield* WarmSandboxes;
        const gone = { id: randomUUID(), projectId: randomUUID(), nodeId: NODE };
        expect(
          yield* addTo({ ...gone, wantedBy: "manifest", wantedUntil: null, createdAt: NOON, atMost: 9 }),
        ).toBe(false);
        expect(yield* countReady(world.projectId)).toEqual({ ready: 0, forTriggers: 0 });
        yield* addReady(world);
        yield* addReady(world, { wantedBy: "trigger", wantedUntil: NOON });
        expect(yield* countReady(world.projectId)).toEqual({ ready: 2, forTriggers: 1 });
      }),
    );

    check(
      "is kept longer by the next wish, and one that the project keeps ready fulfils a wish too",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const { keep, unclaimed } = yield* WarmSandboxes;
        const of = { projectId: world.projectId, nodeId: NODE };
        const until = Effect.map(unclaimed(NODE), (rows) => rows.map(({ wantedUntil }) => wantedUntil));
        expect(yield* keep({ ...of, until: NOON + 10 })).toBe(false);
        yield* add(world, { wantedUntil: NOON + 10 });
        expect(yield* keep({ ...of, until: NOON + 30 })).toBe(true);
        expect(yield* keep({ ...of, until: NOON + 20 })).toBe(true);
        expect(yield* until).toEqual([NOON + 30]);
        yield* add(world, { createdAt: NOON + 1 });
        expect(yield* keep({ ...of, until: NOON + 90 })).toBe(true);
        expect(yield* until).toEqual([NOON + 30, null]);
      }),
    );

    check(
      "is removed only if no session has claimed it, and counts as held until then",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const { remove, ready } = yield* WarmSandboxes;
        const { unheld } = yield* Sandboxes;
        const [free, claimed] = [yield* addReady(world, { createdAt: NOON + 1 }), yield* addReady(world)];
        expect(yield* claim(world, yield* admitSession(world))).toBe(claimed);
        expect(yield* unheld([free, claimed])).toEqual([]);
        expect(yield* remove(claimed)).toBe(false);
        expect(yield* remove(free)).toBe(true);
        expect(yield* remove(free)).toBe(false);
        expect(yield* ready(free, MADE)).toBe(false);
        expect(yield* unheld([free, claimed])).toEqual([free]);
      }),
    );

    check(
      "becomes the session's sandbox, on its own node, with the secrets that it was started with",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const { get, noteSecrets, forgetWarmth } = yield* Sandboxes;
        const sessionId = yield* admitSession(world);
        const id = yield* addReady(world);
        expect(yield* claim(world, sessionId)).toBe(id);
        yield* openSandbox(sessionId, NOON, id);
        expect(yield* get(id)).toMatchObject({ nodeId: NODE, warmRecipe: "recipe" });
        expect(yield* noteSecrets(id, null, MADE.secrets)).toBe(false);
        expect(yield* noteSecrets(id, 3, { revision: 4, versions: {} })).toBe(true);
        expect(yield* (yield* WarmSandboxes).abandoned(NODE, NOON + 2 * ABANDONED_MS)).toEqual([]);
        yield* forgetWarmth(id);
        expect(yield* get(id)).toMatchObject({ warmRecipe: null });
        const cold = yield* openSandbox(yield* admitSession(world));
        expect(yield* get(cold.id)).toMatchObject({ warmRecipe: null });
      }),
    );

    check(
      "is given up if its session does not use it",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const { abandoned } = yield* WarmSandboxes;
        const [stops, waits] = [yield* admitSession(world), yield* admitSession(world)];
        const left = yield* addReady(world, { createdAt: NOON - 1 });
        yield* addReady(world);
        expect(yield* claim(world, stops)).toBe(left);
        yield* claim(world, waits);
        yield* tellSession(stops, { type: "stop.requested" });
        expect(yield* abandoned(NODE, NOON + ABANDONED_MS)).toEqual([]);
        expect(yield* abandoned("node-2", NOON + ABANDONED_MS + 1)).toEqual([]);
        expect(yield* abandoned(NODE, NOON + ABANDONED_MS + 1)).toEqual([left]);
        expect(yield* (yield* Sandboxes).unheld([left])).toEqual([left]);
      }),
    );
  });
};
