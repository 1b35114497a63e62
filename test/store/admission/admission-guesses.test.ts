/**
 * Admissions that are decided by what a node remembers, while another node changes what is so: each test makes one of the
 * things untrue that the guess is fenced by, and nothing else.
 */
import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import type * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { Faults, type FaultPoint } from "../../../src/store/ports/faults.ts";
import { Admissions, type Admission } from "../../../src/store/ports/triggers/admissions.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import type { NewFire } from "../../../src/store/ports/triggers/fires.ts";
import { type Store } from "../../conformance/store/fixture.ts";
import { admitSession, fired } from "../../support/world/sessions.ts";
import { accountOf, BOOT_MS, makeWorld, NOON, type World } from "../../support/world/world.ts";
import { nodesOfFile, someoneWaits } from "../../support/postgres/postgres.ts";

const [firstNode, secondNode] = nodesOfFile();

type Node = Context.Context<Store | SqlClient.SqlClient>;

/** The step that a guess does not pass: it commits together with its write. */
const UNDER_THE_LOCK: FaultPoint = "admission.written";

interface Nodes {
  /** The node that guesses. */
  readonly here: Node;
  readonly there: Node;
  /** How often it decided under the lock. */
  readonly locked: () => number;
}

const check = <E>(name: string, test: (nodes: Nodes) => Effect.Effect<void, E>) => {
  it.live(name, () =>
    Effect.scoped(
      Effect.gen(function* () {
        const passed: FaultPoint[] = [];
        const faults = Layer.succeed(Faults, (point) => void passed.push(point));
        const here = yield* Layer.build(Layer.fresh(Layer.provide(firstNode, faults)));
        const there = yield* Layer.build(Layer.fresh(secondNode));
        yield* test({
          here,
          there,
          locked: () => passed.filter((point) => point === UNDER_THE_LOCK).length,
        });
      }),
    ),
  );
};

/** A webhook's fire, of the newest version of its project. */
const fire = Effect.fnUntraced(function* (world: World, fields: Partial<NewFire> = {}) {
  const project = yield* (yield* Projects).get(world.projectId);
  const request = { ...fired(world, fields), projectVersion: project?.version ?? null };
  const [answer] = yield* (yield* Admissions).admit(world.accountId, [request]);
  return answer;
});

const setCap = (world: World, cap: number) =>
  Effect.flatMap(Identity, ({ setTier }) => setTier(world.accountId, "free", cap));

const outcomeOf = (answer: Admission | undefined): string | undefined => answer?.outcome;

/** A node that has decided once, so that it remembers the account. */
const remembering = Effect.fnUntraced(function* ({ here }: Nodes, cap: number) {
  return yield* Effect.provideContext(
    Effect.gen(function* () {
      const world = yield* makeWorld(cap);
      yield* fire(world);
      return world;
    }),
    here,
  );
});

describe("a guess", () => {
  check("admits and queues in one statement, without the lock", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 2);
      expect(nodes.locked()).toBe(1);
      const answers = yield* Effect.provideContext(Effect.all([fire(world), fire(world)]), nodes.here);
      expect(answers.map(outcomeOf)).toEqual(["admitted", "queued"]);
      expect(nodes.locked()).toBe(1);
      const account = yield* Effect.provideContext(accountOf(world), nodes.here);
      expect(account).toMatchObject({ activeSessions: 2, queuedFires: 1 });
    }),
  );

  check("fails if the cap was lowered [I1, R07]", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 3);
      yield* Effect.provideContext(setCap(world, 1), nodes.there);
      expect(yield* Effect.provideContext(fire(world), nodes.here)).toMatchObject({ outcome: "queued" });
      expect(nodes.locked()).toBe(2);
    }),
  );

  check("fails if the cap was raised: a waiting fire hears of the slot", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 1);
      yield* Effect.provideContext(fire(world), nodes.here);
      yield* Effect.provideContext(setCap(world, 2), nodes.there);
      const answer = yield* Effect.provideContext(fire(world), nodes.here);
      expect(answer).toMatchObject({ outcome: "queued", slotIsFree: true });
    }),
  );

  check("fails if another node took a slot [I1]", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 2);
      yield* Effect.provideContext(admitSession(world), nodes.there);
      const [answer, other] = yield* Effect.provideContext(
        Effect.gen(function* () {
          const projectVersion = (yield* (yield* Projects).get(world.projectId))?.version ?? null;
          const waits = { ...fired(world), projectVersion };
          const refused = { ...fired(world), projectVersion, kind: "hand" } as const;
          return yield* (yield* Admissions).admit(world.accountId, [waits, refused]);
        }),
        nodes.here,
      );
      expect(answer).toMatchObject({ outcome: "queued", slotIsFree: false });
      expect(other).toEqual({ outcome: "refused", limit: 2, activeSessions: 2 });
      expect(nodes.locked()).toBe(2);
    }),
  );

  check("is not made for a delivery that has its answer and would find the queue full", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 1);
      const answers = yield* Effect.provideContext(
        Effect.gen(function* () {
          yield* fire(world, { deliveryId: "known", queueMax: 2 });
          const projectVersion = (yield* (yield* Projects).get(world.projectId))?.version ?? null;
          const last = { ...fired(world, { deliveryId: "new", queueMax: 2 }), projectVersion };
          const known = { ...fired(world, { deliveryId: "known", queueMax: 2 }), projectVersion };
          return yield* (yield* Admissions).admit(world.accountId, [last, known]);
        }),
        nodes.here,
      );
      expect(answers.map(outcomeOf)).toEqual(["queued", "duplicate"]);
    }),
  );

  check("fails if a slot was freed: a waiting fire hears of it", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 1);
      yield* Effect.provideContext(fire(world), nodes.here);
      yield* Effect.provideContext(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`UPDATE accounts SET active_sessions = 0 WHERE id = ${world.accountId}`,
        ),
        nodes.there,
      );
      const answer = yield* Effect.provideContext(fire(world), nodes.here);
      expect(answer).toMatchObject({ outcome: "queued", slotIsFree: true });
    }),
  );

  check("fails if others have begun to wait, because it would overtake them [I13]", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 2);
      const waiting = Effect.gen(function* () {
        yield* setCap(world, 1);
        yield* fire(world);
        yield* setCap(world, 2);
      });
      yield* Effect.provideContext(waiting, nodes.there);
      const answer = yield* Effect.provideContext(fire(world), nodes.here);
      expect(answer).toMatchObject({ outcome: "queued", slotIsFree: true });
    }),
  );

  check("fails if the project was archived", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 3);
      const archive = Effect.flatMap(Projects, ({ update }) =>
        update(world.projectId, { status: "archived" }, NOON),
      );
      yield* Effect.provideContext(archive, nodes.there);
      expect(yield* Effect.provideContext(fire(world), nodes.here)).toEqual({ outcome: "inactive" });
    }),
  );

  check("fails if the project has changed since the request read it", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 3);
      const request = yield* Effect.provideContext(
        Effect.map(
          Effect.flatMap(Projects, ({ get }) => get(world.projectId)),
          (project) => ({ ...fired(world), projectVersion: project?.version ?? null }),
        ),
        nodes.here,
      );
      const pause = Effect.flatMap(Projects, ({ update }) =>
        update(world.projectId, { triggersPaused: true }, NOON),
      );
      yield* Effect.provideContext(pause, nodes.there);
      const admit = Effect.flatMap(Admissions, (admissions) => admissions.admit(world.accountId, [request]));
      expect(yield* Effect.provideContext(admit, nodes.here)).toEqual([{ outcome: "stale" }]);
    }),
  );

  check("fails for a known delivery [I5, W33]", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 3);
      const first = yield* Effect.provideContext(fire(world, { deliveryId: "d-1" }), nodes.there);
      expect(first).toMatchObject({ outcome: "admitted" });
      // The memory of `here` is correct again once it has looked: only the delivery is new to it.
      yield* Effect.provideContext(fire(world), nodes.here);
      const again = yield* Effect.provideContext(fire(world, { deliveryId: "d-1" }), nodes.here);
      expect(again).toMatchObject({ outcome: "duplicate", fire: { deliveryId: "d-1", status: "fired" } });
      const account = yield* Effect.provideContext(accountOf(world), nodes.here);
      expect(account).toMatchObject({ activeSessions: 3 });
    }),
  );

  check("that waits for another's lock uses the result of that one [I1, I18]", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 2);
      const [isHeld, mayEnd] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const holder = Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient;
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`UPDATE accounts SET active_sessions = 2 WHERE id = ${world.accountId}`;
            yield* Deferred.succeed(isHeld, undefined);
            yield* Deferred.await(mayEnd);
          }),
        );
      });
      const holding = yield* Effect.forkChild(Effect.provideContext(holder, nodes.there));
      yield* Deferred.await(isHeld);
      const deciding = yield* Effect.forkChild(Effect.provideContext(fire(world), nodes.here));
      yield* Effect.provideContext(someoneWaits, nodes.there);
      yield* Deferred.succeed(mayEnd, undefined);
      yield* Fiber.join(holding);
      expect(yield* Fiber.join(deciding)).toMatchObject({ outcome: "queued" });
      expect(nodes.locked()).toBe(2);
    }),
  );

  check("is not made for a cron fire, for a request without a version, or for a child session", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 5);
      const { admit } = yield* Effect.provideContext(Admissions, nodes.here);
      yield* admit(world.accountId, [fired(world)]);
      expect(nodes.locked()).toBe(2);
      yield* Effect.provideContext(fire(world, { kind: "cron", scheduledFor: NOON }), nodes.here);
      expect(nodes.locked()).toBe(3);
      const child = Effect.gen(function* () {
        const parentSessionId = yield* admitSession(world);
        const project = yield* (yield* Projects).get(world.projectId);
        const request = fired(world);
        const session = { ...request.session, parentSessionId };
        yield* admit(world.accountId, [{ ...request, session, projectVersion: project?.version ?? null }]);
      });
      yield* Effect.provideContext(child, nodes.here);
      expect(nodes.locked()).toBe(5);
    }),
  );

  check("includes the changes of a drain", (nodes) =>
    Effect.gen(function* () {
      const world = yield* remembering(nodes, 1);
      const program = Effect.gen(function* () {
        yield* fire(world);
        yield* setCap(world, 2);
        const { drain } = yield* Admissions;
        yield* drain(world.accountId, { sessionIds: [randomUUID()], now: NOON, bootTimeoutMs: BOOT_MS });
        return yield* fire(world);
      });
      const answer = yield* Effect.provideContext(program, nodes.here);
      expect(answer).toMatchObject({ outcome: "queued", slotIsFree: false });
      const account = yield* Effect.provideContext(accountOf(world), nodes.here);
      expect(account).toMatchObject({ activeSessions: 2, queuedFires: 1 });
    }),
  );
});
