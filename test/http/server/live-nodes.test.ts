/** Readers of events and of conversations, over real stores: a commit reaches those on other nodes, in order. */
import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import * as Stream from "effect/Stream";
import { describe, expect } from "vitest";
import { conversationStream, conversationTails } from "../../../src/http/live/conversation.ts";
import { eventStream, eventTails } from "../../../src/http/live/events.ts";
import { conversationHubLayer } from "../../../src/services/sessions/conversation-hub.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { postgresStore } from "../../../src/assembly/database.ts";
import { freshDatabase, listening } from "../../support/postgres/postgres.ts";
import { admitSession } from "../../support/world/sessions.ts";
import { converse, nativeItem, report } from "../../support/world/conversations.ts";
import { makeWorld } from "../../support/world/world.ts";

const node = (url: string) =>
  Layer.fresh(Layer.provideMerge(Layer.merge(postgresStore, conversationHubLayer), Client.layer({ url })));

const decoder = new TextDecoder();
const eventOf = (frame: string): string => /^event: (.+)$/m.exec(frame)?.[1] ?? "comment";

/** The kinds of what a stream gives, as it comes. A tail's look without a signal shows as a comment before. */
const following = Effect.fnUntraced(function* <E, R>(stream: Stream.Stream<Uint8Array, E, R>) {
  const got: string[] = [];
  const take = (frame: Uint8Array) => Effect.sync(() => void got.push(eventOf(decoder.decode(frame))));
  yield* Effect.forkScoped(Stream.runForEach(stream, take));
  const until = (event: string) =>
    Effect.repeat(
      Effect.sync(() => got.includes(event)),
      { until: (isThere) => isThere, schedule: Schedule.spaced("5 millis") },
    );
  return { got, until };
});

/** Two nodes that listen to all channels. */
const nodes = Effect.gen(function* () {
  const url = yield* freshDatabase("migrated");
  const [here, there] = [yield* Layer.build(node(url)), yield* Layer.build(node(url))];
  const sql = yield* Effect.provide(SqlClient.SqlClient, there);
  yield* Effect.provide(listening, here);
  yield* Effect.provide(listening, there);
  return { here, there, sql };
});

describe("a reader on another node", () => {
  it.live("gets a conversation's version when it is committed, by the commit's signal", () =>
    Effect.gen(function* () {
      const { here, there } = yield* nodes;
      const { sessionId, sandboxId } = yield* Effect.provide(Effect.flatMap(makeWorld(5), converse), here);
      const { got, until } = yield* Effect.flatMap(
        Effect.provide(
          Effect.flatMap(conversationTails, (tails) => conversationStream(tails, sessionId, null)),
          there,
        ),
        following,
      );
      yield* until("open");
      const { note } = yield* Effect.provide(Conversations, here);
      yield* note(sessionId, report(sandboxId, 1, { items: [nativeItem("a", 1)] }));
      yield* until("item");
      expect(got).toEqual(["open", "item"]);
    }).pipe(Effect.scoped),
  );

  it.live("gets a project's event when it is committed, by the commit's signal", () =>
    Effect.gen(function* () {
      const { here, there } = yield* nodes;
      const world = yield* Effect.provide(makeWorld(5), here);
      const scope = { projectId: world.projectId, sessionId: null };
      const { got, until } = yield* Effect.flatMap(
        Effect.provide(
          Effect.flatMap(eventTails, (tails) => eventStream(tails, scope, null)),
          there,
        ),
        following,
      );
      yield* until("open");
      yield* Effect.provide(admitSession(world), here);
      yield* until("session.status");
      expect(got).toEqual(["open", "session.status"]);
    }).pipe(Effect.scoped),
  );
});

describe("a reader of events", () => {
  it.live("gets an event that an older transaction held back as soon as that one ends", () =>
    Effect.gen(function* () {
      const { here, sql } = yield* nodes;
      const world = yield* Effect.provide(makeWorld(5), here);
      const scope = { projectId: world.projectId, sessionId: null };
      const { got, until } = yield* Effect.flatMap(
        Effect.provide(
          Effect.flatMap(eventTails, (tails) => eventStream(tails, scope, null)),
          here,
        ),
        following,
      );
      yield* until("open");
      const [wrote, mayCommit] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      // No signal tells of it.
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
      yield* Effect.provide(admitSession(world), here);
      expect(got).toEqual(["open"]);
      yield* Deferred.succeed(mayCommit, undefined);
      yield* Fiber.join(slow);
      yield* until("session.status");
      expect(got).toEqual(["open", "slow", "session.status"]);
    }).pipe(Effect.scoped),
  );
});
