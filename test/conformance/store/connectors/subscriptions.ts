/** Conformance: people's own subscriptions, and the sandboxes that have them. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import {
  type Subscription,
  Subscriptions,
} from "../../../../src/features/subscriptions/ports/subscriptions.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { admitSession, openSandbox, tellSandbox } from "../../../support/world/sessions.ts";
import { addPerson, makeWorld, NOON, type World } from "../../../support/world/world.ts";
import type { Check } from "../fixture.ts";

const envelope = (text: string) => Buffer.from(text);

const subscription = (
  { accountId, userId }: Pick<World, "accountId" | "userId">,
  runtime = "codex",
): Pick<Subscription, "id" | "accountId" | "userId" | "runtime" | "sealed"> & { readonly now: number } => ({
  id: randomUUID(),
  accountId,
  userId,
  runtime,
  sealed: { version: 1, envelope: envelope("first") },
  now: NOON,
});

export const checkSubscriptions = (check: Check): void => {
  describe("own subscriptions", () => {
    check(
      "belong to one person, one for each runtime, and go with her deactivation",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const rows = yield* Subscriptions;
        const ben = { accountId: world.accountId, userId: yield* addPerson(world) };
        const first = yield* rows.save(subscription(ben));
        expect(first).toMatchObject({ savedAt: NOON, renewedAt: null, usedAt: null });
        yield* rows.save(subscription(world));
        const anew = yield* rows.save({ ...subscription(ben), now: NOON + 1 });
        yield* rows.save(subscription(ben, "claude-code"));
        expect((yield* rows.list(ben)).map(({ id, runtime }) => [runtime, id === anew.id])).toEqual([
          ["claude-code", false],
          ["codex", true],
        ]);
        expect(yield* rows.remove(first.id)).toBe(false);
        expect(yield* rows.remove(anew.id)).toBe(true);
        yield* (yield* People).deactivate(ben.accountId, ben.userId, NOON);
        expect(yield* rows.list(ben)).toEqual([]);
        expect(yield* rows.list(world)).toHaveLength(1);
      }),
    );

    check(
      "are renewed once from each version, and not after they were saved anew",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const rows = yield* Subscriptions;
        const { id } = yield* rows.save(subscription(world));
        const renewed = { sealed: { version: 2, envelope: envelope("second") }, now: NOON + 1 };
        expect(yield* rows.renew(id, renewed)).toBe(true);
        expect(yield* rows.renew(id, renewed)).toBe(false);
        const [kept] = yield* rows.list(world);
        expect(kept).toMatchObject({ id, sealed: { version: 2 }, renewedAt: NOON + 1 });
        yield* rows.save(subscription(world));
        expect(yield* rows.renew(id, { ...renewed, sealed: { ...renewed.sealed, version: 3 } })).toBe(false);
      }),
    );

    check(
      "are noted for a sandbox until it is without them or ends, for its session and for those above it",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const rows = yield* Subscriptions;
        const own = yield* rows.save(subscription(world));
        const parent = yield* admitSession(world);
        const child = yield* admitSession(world, { parentSessionId: parent });
        const { id: sandboxId } = yield* openSandbox(child);
        const { id: other } = yield* openSandbox(yield* admitSession(world));
        const holder = { sandboxId, sessionId: child };
        expect(yield* rows.deliver(sandboxId, own, NOON + 5)).toBe("new");
        expect(yield* rows.deliver(sandboxId, own, NOON + 6)).toBe("known");
        expect(yield* rows.deliver(other, { ...own, id: randomUUID() }, NOON)).toBe("gone");
        expect(yield* rows.deliveredTo(sandboxId)).toMatchObject({ id: own.id, usedAt: NOON + 6 });
        expect(yield* rows.deliveredTo(other)).toBe(null);
        expect(yield* rows.holdersBelow(parent)).toEqual([holder]);
        expect(yield* rows.holdersBelow(child)).toEqual([holder]);
        yield* rows.remove(own.id);
        expect(yield* rows.deliveredTo(sandboxId)).toBe(null);
        expect(yield* rows.holders(own.userId, own.runtime)).toEqual([holder]);
        expect(yield* rows.holders(own.userId, "gemini")).toEqual([]);
        yield* rows.forgetDelivery(sandboxId);
        expect(yield* rows.holdersBelow(parent)).toEqual([]);
        const again = yield* rows.save(subscription(world));
        yield* rows.deliver(sandboxId, again, NOON);
        yield* tellSandbox(sandboxId, { type: "stop.requested" });
        expect(yield* rows.holdersBelow(parent)).toEqual([]);
        expect(yield* rows.deliveredTo(sandboxId)).toBe(null);
      }),
    );
  });
};
