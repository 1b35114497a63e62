import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { prune } from "../../src/duties/retention.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { ATTACHMENT_UNUSED_MS, Conversations } from "../../src/store/ports/sessions/conversations.ts";
import { converse } from "../support/world/conversations.ts";
import { makeWorld, NOON, numbered } from "../support/world/world.ts";

it.effect("retention removes an attachment without a message once it has expired, and not before", () =>
  Effect.gen(function* () {
    const { keepAttachment, attachment } = yield* Conversations;
    const { sessionId } = yield* converse(yield* makeWorld(5));
    const file = { name: "a", mediaType: "text/plain", sha256: "s", content: Buffer.from("a") };
    yield* keepAttachment(sessionId, { ...file, id: numbered(1), now: NOON });
    const isKept = Effect.gen(function* () {
      // A step is followed by a pause while there was something to remove.
      const round = yield* Effect.forkChild(
        prune({
          fireRetentionMs: ATTACHMENT_UNUSED_MS * 100,
          auditRetentionMs: ATTACHMENT_UNUSED_MS * 100,
          features: () => Effect.succeed(0),
        }),
      );
      yield* TestClock.adjust("1 second");
      yield* Fiber.join(round);
      return (yield* attachment(sessionId, numbered(1))) !== null;
    });
    yield* TestClock.setTime(NOON + ATTACHMENT_UNUSED_MS - 10_000);
    expect(yield* isKept).toBe(true);
    yield* TestClock.setTime(NOON + ATTACHMENT_UNUSED_MS);
    expect(yield* isKept).toBe(false);
  }).pipe(Effect.provide(memoryStore)),
);

it.effect("retention takes the features' step until it finds nothing", () =>
  Effect.gen(function* () {
    let left = 3;
    const round = yield* Effect.forkChild(
      prune({
        fireRetentionMs: NOON,
        auditRetentionMs: NOON,
        features: () => Effect.sync(() => (left > 0 ? left-- : 0)),
      }),
    );
    yield* TestClock.adjust("1 second");
    yield* Fiber.join(round);
    expect(left).toBe(0);
  }).pipe(Effect.provide(memoryStore)),
);
