/** Conformance: what the metrics show of the whole installation. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { OutboundWebhooks } from "../../../../src/features/notifications/ports/outbound-webhooks.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { Operations } from "../../../../src/store/ports/operations.ts";
import type { Check } from "../fixture.ts";
import { converse, report } from "../../../support/world/conversations.ts";
import { addDeliveries, addReceiver } from "../../../support/world/outbound.ts";
import { admitOne, fired, tellSession } from "../../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";

export const checkWatch = (check: Check): void => {
  describe("what the metrics show of the installation", () => {
    check(
      "is the number of live sessions, and how long the oldest of each kind waits",
      Effect.gen(function* () {
        const { watch } = yield* Operations;
        const world = yield* makeWorld(1);
        const none = { oldestFireAt: null, oldestDeliveryAt: null, oldestRequestAt: null };
        expect(yield* watch).toMatchObject(none);
        const receiver = yield* addReceiver(world);
        const { sessionId, sandboxId } = yield* converse(world);
        yield* admitOne(world, fired(world));
        // The receiver is behind once an event can be read.
        yield* Effect.repeat((yield* OutboundWebhooks).behind(100), {
          until: (found) => found.some(({ id }) => id === receiver.id),
          schedule: Schedule.spaced("10 millis"),
        });
        yield* addDeliveries(receiver, 1, NOON + 7);
        const asks = { turn: { state: "requires_action", waiting_for: null } } as const;
        yield* (yield* Conversations).note(sessionId, report(sandboxId, 1, asks));
        const { sessions, ...oldest } = yield* watch;
        expect((sessions.get("provisioning") ?? 0) + (sessions.get("running") ?? 0)).toBe(1);
        expect(oldest.oldestFireAt).not.toBeNull();
        expect(oldest.oldestDeliveryAt).toBe(NOON + 7);
        expect(oldest.oldestRequestAt).not.toBeNull();
        // The request of a session that has ended does not count.
        yield* tellSession(sessionId, { type: "stop.requested" });
        expect((yield* watch).oldestRequestAt).toBeNull();
      }),
    );
  });
};
