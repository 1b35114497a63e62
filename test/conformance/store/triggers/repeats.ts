/** Conformance: deliveries that come again (api.md 4 "Duplicates"). */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Admissions } from "../../../../src/store/ports/triggers/admissions.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { Fires } from "../../../../src/store/ports/triggers/fires.ts";
import { nativeItem, report } from "../../../support/world/conversations.ts";
import { admitOne, drain, fired, openSandbox, tellSession } from "../../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";
import { activeSessions, type Check } from "../fixture.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** The session fails before it has a sandbox. */
const lose = (sessionId: string) =>
  tellSession(sessionId, {
    type: "branch.failed",
    failure: { code: "branch_failed", message: "git said no" },
  });

export const checkRepeats = (check: Check): void => {
  describe("a delivery id", () => {
    check(
      "that is repeated is answered with its current row, also within one batch [I5]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { admit } = yield* Admissions;
        const twin = () => fired(world, { deliveryId: "d-1" });
        const [first, second] = yield* admit(world.accountId, [twin(), twin()]);
        const third = yield* admitOne(world, twin());
        expect(first?.outcome).toBe("admitted");
        for (const answer of [second, third]) {
          expect(answer).toMatchObject({
            outcome: "duplicate",
            fire: { status: "fired", deliveryId: "d-1" },
          });
        }
        expect(yield* activeSessions(world)).toBe(1);
      }),
    );

    check(
      "belongs to its trigger alone",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        yield* admitOne(world, fired(world, { deliveryId: "d-1" }));
        const other = yield* admitOne(world, fired(world, { deliveryId: "d-1", triggerSlug: "other" }));
        expect(other.outcome).toBe("admitted");
      }),
    );

    check(
      "that is repeated after 24 h is a new fire",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        yield* admitOne(world, fired(world, { deliveryId: "d-1" }));
        const late = NOON + DAY_MS;
        expect((yield* admitOne(world, fired(world, { deliveryId: "d-1" }, late))).outcome).toBe("duplicate");
        expect((yield* admitOne(world, fired(world, { deliveryId: "d-1" }, late + 1))).outcome).toBe(
          "admitted",
        );
        expect((yield* admitOne(world, fired(world, { deliveryId: "d-1" }, late + 2))).outcome).toBe(
          "duplicate",
        );
      }),
    );

    check(
      "whose fire failed is tried again in the same row",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get, list } = yield* Fires;
        const tooLarge = fired(world, { deliveryId: "d-1", prompt: { is: "too_large" } });
        const fireId = tooLarge.fire?.id ?? "";
        expect(yield* admitOne(world, tooLarge)).toEqual({
          outcome: "failed",
          fireId,
          reason: "prompt_too_large",
        });
        expect(yield* get(fireId)).toMatchObject({
          status: "failed",
          reason: "prompt_too_large",
          attempts: 1,
        });
        expect(yield* activeSessions(world)).toBe(0);
        const request = fired(world, { deliveryId: "d-1" }, NOON + 1);
        expect(yield* admitOne(world, request)).toMatchObject({ outcome: "admitted", fireId });
        expect(yield* get(fireId)).toMatchObject({
          status: "fired",
          reason: null,
          attempts: 2,
          sessionId: request.session.id,
        });
        const again = fired(world, { deliveryId: "d-1", prompt: { is: "too_large" } });
        expect((yield* admitOne(world, again)).outcome).toBe("duplicate");
        const page = yield* list(world.projectId, { limit: 10, cursor: null, slug: null, status: null });
        expect(page.items.map(({ status }) => status).toSorted()).toEqual(["duplicate", "fired"]);
      }),
    );

    check(
      "of a session that was lost before its first turn runs again once, under a new row that names the first",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get } = yield* Fires;
        const again = (now: number) => fired(world, { deliveryId: "d-1" }, now);
        const [first, second, third] = [again(NOON), again(NOON + 1), again(NOON + 2)];
        yield* admitOne(world, first);
        yield* lose(first.session.id);
        expect((yield* admitOne(world, second)).outcome).toBe("admitted");
        expect(yield* get(second.fire.id)).toMatchObject({
          status: "fired",
          sessionId: second.session.id,
          deliveryId: "d-1",
          replayOf: first.fire.id,
        });
        expect(yield* get(first.fire.id)).toMatchObject({ status: "fired", sessionId: first.session.id });
        expect((yield* admitOne(world, third)).outcome).toBe("duplicate");
        expect(yield* get(third.fire.id)).toMatchObject({
          status: "duplicate",
          duplicateOf: second.fire.id,
        });
        yield* lose(second.session.id);
        const [last, after] = [again(NOON + 3), again(NOON + 4)];
        const both = yield* (yield* Admissions).admit(world.accountId, [last, after]);
        expect(both.map(({ outcome }) => outcome)).toEqual(["admitted", "duplicate"]);
      }),
    );

    check(
      "keeps the name of the first row while its second row waits, expires and is tried again",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { get } = yield* Fires;
        const first = fired(world, { deliveryId: "d-1" });
        yield* admitOne(world, first);
        yield* lose(first.session.id);
        yield* admitOne(world, fired(world, { deliveryId: "d-2" }));
        const second = fired(world, { deliveryId: "d-1", queueTtlMs: 10 }, NOON + 1);
        expect((yield* admitOne(world, second)).outcome).toBe("queued");
        yield* drain(world, 5, NOON + 11);
        expect(yield* get(second.fire.id)).toMatchObject({ status: "expired", replayOf: first.fire.id });
        const third = fired(world, { deliveryId: "d-1" }, NOON + 12);
        expect((yield* admitOne(world, third)).outcome).toBe("queued");
        expect(yield* get(second.fire.id)).toMatchObject({ status: "queued", replayOf: first.fire.id });
      }),
    );

    check(
      "of a session that was lost after its first turn had begun is a duplicate",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const request = fired(world, { deliveryId: "d-1" });
        yield* admitOne(world, request);
        const { id: sandboxId } = yield* openSandbox(request.session.id);
        const { open, note } = yield* Conversations;
        yield* open(request.session.id, NOON);
        yield* note(request.session.id, report(sandboxId, 1, { items: [nativeItem("m1", 1)] }));
        yield* lose(request.session.id);
        const answer = yield* admitOne(world, fired(world, { deliveryId: "d-1" }));
        expect(answer).toMatchObject({ outcome: "duplicate", fire: { id: request.fire.id } });
      }),
    );

    check(
      "of a replayed fire is ignored",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const request = fired(world, { deliveryId: "d-1" });
        yield* admitOne(world, request);
        const replay = yield* admitOne(
          world,
          fired(world, { deliveryId: "d-1", replayOf: request.fire?.id ?? null }),
        );
        expect(replay.outcome).toBe("admitted");
      }),
    );
  });
};
