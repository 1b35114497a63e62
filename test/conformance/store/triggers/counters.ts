/** Conformance: an account's counters compared with the rows that they count. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Counters } from "../../../../src/store/ports/triggers/counters.ts";
import { Admissions } from "../../../../src/store/ports/triggers/admissions.ts";
import { admitOne, admitSession, fired, tellSession } from "../../../support/world/sessions.ts";
import { accountOf, makeWorld, NOON } from "../../../support/world/world.ts";
import type { Store } from "../fixture.ts";

/** Sets an account's counters to wrong values. `Side`: direct access to the store. */
export type Distort<Side> = (
  accountId: string,
  to: { readonly activeSessions: number; readonly queuedFires: number },
) => Effect.Effect<void, never, Side>;

type CheckWith<Side> = <E>(name: string, test: Effect.Effect<void, E, Store | Side>) => void;

export const checkCounters = <Side>(check: CheckWith<Side>, distort: Distort<Side>): void => {
  describe("an account's counters", () => {
    check(
      "are correct whatever happens to its sessions and its queue, and nothing is corrected [I1]",
      Effect.gen(function* () {
        const world = yield* makeWorld(2);
        const { wrong, mend } = yield* Counters;
        const isRight = Effect.gen(function* () {
          expect(yield* wrong).toEqual([]);
          expect(yield* mend(world.accountId)).toBeNull();
        });
        yield* isRight;
        const first = yield* admitSession(world);
        yield* admitSession(world);
        yield* admitOne(world, fired(world));
        yield* admitOne(world, fired(world, { queueTtlMs: 10 }));
        yield* isRight;
        yield* tellSession(first, { type: "stop.requested" });
        yield* isRight;
        const { drain } = yield* Admissions;
        yield* drain(world.accountId, { sessionIds: [randomUUID()], now: NOON + 20, bootTimeoutMs: 1 });
        yield* isRight;
        expect(yield* accountOf(world)).toMatchObject({ activeSessions: 2, queuedFires: 0 });
        expect(yield* mend(randomUUID())).toBeNull();
      }),
    );

    for (const [what, activeSessions, queuedFires] of [
      ["too many slots are taken", 3, 1],
      ["too few slots are taken", 0, 1],
      ["no fire seems to wait", 1, 0],
      ["too many seem to wait", 1, 7],
    ] as const) {
      check(
        `are counted again if ${what}, and only this account's [I1, I12]`,
        Effect.gen(function* () {
          const world = yield* makeWorld(1);
          const { wrong, mend } = yield* Counters;
          const first = yield* admitSession(world);
          yield* admitOne(world, fired(world));
          yield* distort(world.accountId, { activeSessions, queuedFires });
          expect(yield* wrong).toEqual([world.accountId]);
          expect(yield* mend(world.accountId)).toEqual({
            activeSessions: { said: activeSessions, counted: 1 },
            queuedFires: { said: queuedFires, counted: 1 },
          });
          expect(yield* accountOf(world)).toMatchObject({ activeSessions: 1, queuedFires: 1 });
          expect([yield* wrong, yield* mend(world.accountId)]).toEqual([[], null]);
          yield* tellSession(first, { type: "stop.requested" });
          const { drain, waitingAccounts } = yield* Admissions;
          expect(yield* waitingAccounts).toEqual([world.accountId]);
          const request = { sessionIds: [randomUUID(), randomUUID()], now: NOON, bootTimeoutMs: 1 };
          expect((yield* drain(world.accountId, request)).admitted).toHaveLength(1);
        }),
      );
    }
  });
};
