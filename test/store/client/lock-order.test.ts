/** Who writes the same rows takes their locks in the same order: the account's, the project's, then what is below. */
import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { describe, expect } from "vitest";
import { Admissions } from "../../../src/store/ports/triggers/admissions.ts";
import { Fires } from "../../../src/store/ports/triggers/fires.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { Secrets } from "../../../src/store/ports/projects/secrets.ts";
import { type Store } from "../../conformance/store/fixture.ts";
import { admitOne, fired } from "../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../support/world/world.ts";
import { someoneWaits, storeOfFile } from "../../support/postgres/postgres.ts";

const store = storeOfFile();

/**
 * Holds a row's lock until an operation runs up against it, and then takes another one's: refused where the operation
 * has that one already, since both would wait for ever.
 */
const holding = Effect.fnUntraced(function* <A, E>(
  operation: Effect.Effect<A, E, Store>,
  locks: {
    readonly held: Effect.Effect<unknown, SqlError>;
    readonly next: Effect.Effect<unknown, SqlError>;
  },
) {
  const sql = yield* SqlClient.SqlClient;
  const [isHeld, mayGoOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
  const holder = yield* Effect.forkChild(
    sql.withTransaction(
      Effect.gen(function* () {
        yield* locks.held;
        yield* Deferred.succeed(isHeld, undefined);
        yield* Deferred.await(mayGoOn);
        yield* locks.next;
      }),
    ),
  );
  yield* Deferred.await(isHeld);
  const running = yield* Effect.forkChild(operation);
  const first = yield* Effect.raceFirst(
    Effect.as(Fiber.await(running), "ends"),
    Effect.as(someoneWaits, "waits"),
  );
  expect(first).toBe("waits");
  yield* Deferred.succeed(mayGoOn, undefined);
  yield* Fiber.join(holder);
  return yield* Fiber.join(running);
});

const check = <E>(name: string, test: Effect.Effect<void, E, Store | SqlClient.SqlClient>) => {
  it.live(name, () => Effect.provide(test, store, { local: true }));
};

describe("a lock of", () => {
  check(
    "a project comes before that of its secret, also if the secret is removed",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const { projectId, userId } = yield* makeWorld(1);
      const { put, remove } = yield* Secrets;
      yield* put({ projectId, name: "KEY", version: 1, envelope: new Uint8Array(64) }, { userId, now: NOON });
      const removed = yield* holding(remove(projectId, "KEY", NOON), {
        held: sql`SELECT FROM projects WHERE id = ${projectId} FOR NO KEY UPDATE`,
        next: sql`SELECT FROM project_secrets WHERE project_id = ${projectId} FOR UPDATE NOWAIT`,
      });
      expect(removed).toBe(true);
    }),
  );

  check(
    "an account comes before the skipped instants: an admission of the same ones sees them or is seen [I2]",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const world = yield* makeWorld(1);
      const { skip } = yield* Admissions;
      const { get } = yield* Projects;
      const { accountId, projectId } = world;
      const isDone = yield* holding(
        skip({
          accountId,
          projectId,
          projectVersion: (yield* get(projectId))?.version ?? 0,
          triggerSlug: "nightly",
          reason: "missed",
          instants: [{ id: randomUUID(), dueAt: NOON }],
          now: NOON,
        }),
        {
          held: sql`SELECT FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`,
          next: sql`SELECT FROM projects WHERE id = ${projectId} FOR NO KEY UPDATE NOWAIT`,
        },
      );
      expect(isDone).toBe(true);
      const again = fired(world, { kind: "cron", triggerSlug: "nightly", scheduledFor: NOON });
      expect((yield* admitOne(world, again)).outcome).toBe("accounted");
    }),
  );

  check(
    "an account comes before the pruned requests",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const world = yield* makeWorld(5);
      const { prune } = yield* Fires;
      const request = { body: Buffer.alloc(9), encoding: "identity", headers: null } as const;
      yield* admitOne(world, fired(world, { request }));
      for (const limits of [
        { before: 0, requestBytes: 8 },
        { before: NOON + 1, requestBytes: 100 },
      ]) {
        yield* holding(prune(limits), {
          held: sql`SELECT FROM accounts WHERE id = ${world.accountId} FOR NO KEY UPDATE`,
          next: sql`SELECT FROM fire_requests FOR UPDATE NOWAIT`,
        });
        expect(yield* sql`SELECT FROM fire_requests`).toEqual([]);
        yield* admitOne(world, fired(world, { request }));
      }
    }),
  );
});
