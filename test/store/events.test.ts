import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { Events, EVENTS_KEPT_PER_PROJECT } from "../../src/store/ports/events.ts";
import { OutboundWebhooks } from "../../src/features/notifications/ports/outbound-webhooks.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import * as Client from "../../src/store/postgres/connection/client.ts";
import { postgresStore } from "../../src/assembly/database.ts";
import { addReceiver } from "../support/world/outbound.ts";
import { admitSession } from "../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../support/world/world.ts";
import { freshDatabase, listening, storeOfFile } from "../support/postgres/postgres.ts";

const store = storeOfFile();

const read = Effect.fnUntraced(function* (world: World, cursor: string | null) {
  const { after } = yield* Events;
  return yield* after({ projectId: world.projectId, sessionId: null, cursor, limit: 100 });
});

describe("a reader of events", () => {
  it.live("sees a commit only when no older transaction can still put one before it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const world = yield* makeWorld(5);
      const begin = yield* read(world, null);
      const [wrote, mayCommit] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const slow = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`
              INSERT INTO events (project_id, type, at, data) VALUES (${world.projectId}, 'slow', now(), '{}')`;
            yield* Deferred.succeed(wrote, undefined);
            yield* Deferred.await(mayCommit);
          }),
        ),
      );
      yield* Deferred.await(wrote);
      yield* admitSession(world);
      const between = yield* read(world, begin.cursor);
      expect(between).toMatchObject({ events: [], isHeldBack: true });
      yield* Deferred.succeed(mayCommit, undefined);
      yield* Fiber.join(slow);
      // Other tests' transactions on the same server hold readers back, too.
      const all = yield* Effect.repeat(read(world, between.cursor), {
        until: ({ events }) => events.length > 0,
        schedule: Schedule.spaced("10 millis"),
      });
      expect(all.events.map(({ type }) => type)).toEqual(["slow", "session.status"]);
    }).pipe(Effect.provide(store, { local: true })),
  );

  it.live("on another node is woken by a commit on this one", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase("migrated");
      const node = () => Layer.provideMerge(postgresStore, Client.layer({ url }));
      const world = yield* Effect.provide(makeWorld(5), node(), { local: true });
      yield* Effect.gen(function* () {
        const here = yield* Layer.build(node());
        const there = yield* Layer.build(Layer.fresh(node()));
        const { changed } = yield* Effect.provide(Events, there);
        yield* Effect.provide(listening, here);
        yield* Effect.provide(listening, there);
        const woken = yield* Effect.forkChild(changed(world.projectId), { startImmediately: true });
        const id = yield* Effect.provide(admitSession(world), here);
        yield* Fiber.join(woken);
        expect(
          yield* Effect.provide(
            Effect.flatMap(Sessions, ({ get }) => get(id)),
            there,
          ),
        ).not.toBe(null);
      }).pipe(Effect.scoped);
    }).pipe(Effect.scoped),
  );
});

describe("the newest events of a project", () => {
  it.live("are kept beyond their number while a receiver has yet to read them [O02]", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const receiver = yield* addReceiver(world);
      const begin = yield* read(world, null);
      yield* sql`
        INSERT INTO events (project_id, type, at, data)
        SELECT ${projectId}::uuid, 'any', to_timestamp(${NOON / 1000}), '{}'
        FROM generate_series(1, ${EVENTS_KEPT_PER_PROJECT + 2})`;
      const { prune } = yield* Events;
      const { behind, collect } = yield* OutboundWebhooks;
      const [found] = yield* Effect.repeat(behind(9), {
        until: (receivers) => receivers.length > 0,
        schedule: Schedule.spaced("10 millis"),
      });
      yield* prune(NOON);
      const all = yield* read(world, begin.cursor);
      expect(all.reset).toBe(false);
      const to = all.events[0]?.cursor ?? "";
      yield* collect({
        projectId,
        id: receiver.id,
        from: found?.cursor ?? "",
        to,
        deliveries: [],
        now: NOON,
      });
      yield* prune(NOON);
      // The receiver has read one of the two that are too many.
      expect((yield* read(world, begin.cursor)).reset).toBe(true);
      expect((yield* read(world, to)).reset).toBe(false);
    }).pipe(Effect.provide(store, { local: true })),
  );
});
