/** Conformance: what became of the sessions that fires started. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Fires } from "../../../../src/store/ports/triggers/fires.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { admitOne, fired, tellSession } from "../../../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../../../support/world/world.ts";
import { type Check } from "../fixture.ts";

const FAILURE = { code: "branch_failed", message: "git said no" } as const;
const ERROR = { code: "no_model", message: "The project has no key." };
const DAY = 86_400_000;

/** A fire with its session, whose sandbox is wanted. */
const run = Effect.fnUntraced(function* (world: World, second: number) {
  const request = fired(world, {}, NOON + second * 1000);
  const answer = yield* admitOne(world, request);
  if (answer.outcome !== "admitted") return yield* Effect.die(answer.outcome);
  return { fireId: request.fire.id, sessionId: answer.sessionId };
});

/** Ends a turn of the session's first sandbox. */
const endTurn = Effect.fnUntraced(function* (
  { sessionId }: { readonly sessionId: string },
  number: number,
  state: "completed" | "failed" | "interrupted",
) {
  const { get, noteTurn } = yield* Sessions;
  const sandboxId = (yield* get(sessionId))?.sandboxId ?? "";
  const error = state === "failed" ? ERROR : null;
  yield* noteTurn(sessionId, {
    sandboxId,
    number,
    state,
    error,
    at: new Date(NOON).toISOString(),
    now: NOON,
  });
});

const outcomeNow = (fireId: string) =>
  Effect.gen(function* () {
    const fire = yield* (yield* Fires).get(fireId);
    return [fire?.status, fire?.outcome?.state, fire?.outcome?.code];
  });

const branched = (sandboxId: string) =>
  ({ type: "branch.created", commit: "a".repeat(40), sandboxId }) as const;

export const checkOutcomes = (check: Check): void => {
  describe("a run", () => {
    check(
      "has the name of its session, and of the person who ran it by hand",
      Effect.gen(function* () {
        const world = yield* makeWorld(20);
        const { get } = yield* Fires;
        const byWebhook = yield* run(world, 1);
        const byHand = fired(world, { kind: "manual" }, NOON + 2000);
        yield* admitOne(world, byHand);
        const again = fired(world, { replayOf: byWebhook.fireId }, NOON + 3000);
        yield* admitOne(world, again);
        yield* (yield* Sessions).rename(byWebhook.sessionId, { name: "Greet the world", now: NOON });
        const names = (id: string) =>
          Effect.map(get(id), (fire) => [fire?.kind, fire?.sessionName, fire?.startedBy]);
        expect(yield* names(byWebhook.fireId)).toEqual(["webhook", "Greet the world", null]);
        expect(yield* names(byHand.fire.id)).toEqual(["manual", null, "admin"]);
        expect(yield* names(again.fire.id)).toEqual(["webhook", null, "admin"]);
      }),
    );

    check(
      "has what became of its session, and is found among the failed ones while that failed",
      Effect.gen(function* () {
        const world = yield* makeWorld(20);
        const { list } = yield* Fires;
        const runs = yield* Effect.forEach([1, 2, 3, 4, 5, 6], (second) => run(world, second));
        const [boots, failed, wrong, done, ended, cut] = runs;
        if (!boots || !failed || !wrong || !done || !ended || !cut) return yield* Effect.die("no runs");
        yield* Effect.forEach([wrong, done, cut], ({ sessionId }) =>
          tellSession(sessionId, branched(crypto.randomUUID())),
        );
        yield* tellSession(failed.sessionId, { type: "branch.failed", failure: FAILURE });
        yield* endTurn(wrong, 1, "failed");
        yield* endTurn(done, 1, "completed");
        yield* endTurn(cut, 1, "interrupted");
        yield* tellSession(ended.sessionId, { type: "stop.requested" });
        const large = fired(world, { prompt: { is: "too_large" } }, NOON + 7000);
        yield* admitOne(world, large);
        expect(yield* Effect.forEach(runs, ({ fireId }) => outcomeNow(fireId))).toEqual([
          ["fired", "running", null],
          ["fired", "failed", "branch_failed"],
          ["fired", "failed", "no_model"],
          ["fired", "finished", null],
          ["fired", "stopped", "requested"],
          ["fired", "stopped", null],
        ]);
        expect(yield* outcomeNow(large.fire.id)).toEqual(["failed", undefined, undefined]);
        const wanted = { slug: null, status: null, hasFailed: true };
        const page = (limit: number, cursor: string | null = null) =>
          list(world.projectId, { ...wanted, limit, cursor });
        const ids = Effect.map(page(9), ({ items }) => items.map(({ id }) => id));
        expect(yield* ids).toEqual([large.fire.id, wrong.fireId, failed.fireId]);
        const first = yield* page(2);
        const second = yield* page(2, first.nextCursor);
        expect([...first.items, ...second.items]).toEqual((yield* page(9)).items);
        const other = { ...wanted, slug: "another", limit: 9, cursor: null };
        expect((yield* list(world.projectId, other)).items).toEqual([]);
        // A later turn that ends well, and a restart, take a run off the list.
        yield* endTurn(wrong, 2, "completed");
        expect(yield* outcomeNow(wrong.fireId)).toEqual(["fired", "finished", null]);
        yield* tellSession(
          failed.sessionId,
          { type: "restart.requested", sandboxId: crypto.randomUUID() },
          NOON + DAY,
        );
        expect(yield* outcomeNow(failed.fireId)).toEqual(["fired", "running", null]);
        expect(yield* ids).toEqual([large.fire.id]);
      }),
    );
  });
};
