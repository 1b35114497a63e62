/** The end of a turn in Postgres: what is noted at the same time, and transactions that do not commit. */
import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { ChangeRequests } from "../../../src/features/change-requests/ports/change-requests.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { followSession, type Store } from "../../conformance/store/fixture.ts";
import { storeOfFile } from "../../support/postgres/postgres.ts";
import { converse } from "../../support/world/conversations.ts";
import { reported, step } from "../../support/world/conversation-steps.ts";
import { makeWorld, NOON } from "../../support/world/world.ts";

const store = storeOfFile();
const check = <E>(name: string, test: Effect.Effect<void, E, Store | SqlClient.SqlClient | Scope.Scope>) => {
  it.live(name, () => Effect.provide(Effect.scoped(test), store, { local: true }));
};

/** How many turns end in the race. */
const TURNS = 40;

const open = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const { projectId } = world;
  const { sessionId, sandboxId } = yield* converse(world);
  const told = yield* followSession({ projectId, sessionId }, "session.turn_ended");
  const note = (number: number) =>
    Effect.flatMap(Sessions, ({ noteTurn }) =>
      noteTurn(sessionId, {
        sandboxId,
        number,
        state: "completed",
        error: null,
        at: "2026-03-01T12:00:00.000Z",
        conversation: { number, message_id: null },
        now: NOON,
      }),
    );
  return { projectId, sessionId, sandboxId, told, note };
});

describe("the end of a turn", () => {
  check(
    "is told once for each turn, also if both facts and a repeated report come at the same time",
    Effect.gen(function* () {
      const { sessionId, sandboxId, told, note } = yield* open;
      const turns = Array.from({ length: TURNS }, (_, index) => index + 1);
      yield* Effect.forEach(turns, (number) =>
        Effect.gen(function* () {
          yield* step(sessionId, reported(sandboxId, number - 1, true));
          yield* Effect.all([note(number), step(sessionId, reported(sandboxId, number)), note(number)], {
            concurrency: "unbounded",
          });
        }),
      );
      expect((yield* told(TURNS)).map(({ data }) => data["turn"])).toEqual(turns);
    }),
  );

  check(
    "is neither lost nor told twice if a transaction does not commit, and names the open change request",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const { projectId, sessionId, sandboxId, told, note } = yield* open;
      const cut = <A, E, R>(work: Effect.Effect<A, E, R>) =>
        Effect.exit(sql.withTransaction(Effect.andThen(work, Effect.fail("the connection ended"))));
      yield* (yield* ChangeRequests).open({
        id: randomUUID(),
        projectId,
        sessionId,
        title: "Fix the build",
        description: "",
        headRef: sessionId,
        baseRef: "main",
        createdBy: null,
        tips: { base: "b1", head: "h1" },
        now: NOON,
      });
      yield* step(sessionId, reported(sandboxId, 0, true));
      yield* cut(note(1));
      yield* note(1);
      yield* cut(step(sessionId, reported(sandboxId, 1)));
      yield* step(sessionId, reported(sandboxId, 1));
      yield* step(sessionId, reported(sandboxId, 1, true));
      yield* step(sessionId, reported(sandboxId, 2));
      yield* cut(note(2));
      yield* note(2);
      expect((yield* told(2)).map(({ data }) => [data["turn"], data["change_request"]])).toEqual([
        [1, 1],
        [2, 1],
      ]);
    }),
  );
});
