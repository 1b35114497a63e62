import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { prune } from "../../src/duties/retention.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { ABANDONED, ExecutorCalls } from "../../src/store/ports/connectors/executor-calls.ts";
import { ATTACHMENT_UNUSED_MS, Conversations } from "../../src/store/ports/sessions/conversations.ts";
import { converse } from "../support/world/conversations.ts";
import { makeWorld, NOON, numbered } from "../support/world/world.ts";

/** One round of the duty. */
const round = Effect.fnUntraced(function* (
  keptMs: number,
  features: () => Effect.Effect<number> = () => Effect.succeed(0),
) {
  // A step is followed by a pause while there was something to remove.
  const pruned = yield* Effect.forkChild(
    prune({ fireRetentionMs: keptMs, auditRetentionMs: keptMs, features }),
  );
  yield* TestClock.adjust("1 second");
  yield* Fiber.join(pruned);
});

it.effect("retention removes an attachment without a message once it has expired, and not before", () =>
  Effect.gen(function* () {
    const { keepAttachment, attachment } = yield* Conversations;
    const { sessionId } = yield* converse(yield* makeWorld(5));
    const file = { name: "a", mediaType: "text/plain", sha256: "s", content: Buffer.from("a") };
    yield* keepAttachment(sessionId, { ...file, id: numbered(1), now: NOON });
    const isKept = Effect.gen(function* () {
      yield* round(ATTACHMENT_UNUSED_MS * 100);
      return (yield* attachment(sessionId, numbered(1))) !== null;
    });
    yield* TestClock.setTime(NOON + ATTACHMENT_UNUSED_MS - 10_000);
    expect(yield* isKept).toBe(true);
    yield* TestClock.setTime(NOON + ATTACHMENT_UNUSED_MS);
    expect(yield* isKept).toBe(false);
  }).pipe(Effect.provide(memoryStore)),
);

it.effect("retention ends a call whose service was stopped five minutes ago, and not before", () =>
  Effect.gen(function* () {
    const { projectId, userId } = yield* makeWorld(5);
    const { begin, list } = yield* ExecutorCalls;
    const call = { id: numbered(1), projectId, sessionId: numbered(2), userId, startedBy: "user" } as const;
    const tool = {
      connector: "docs",
      tool: "read",
      origin: "https://mcp.example.com",
      pin: null,
      rule: null,
    };
    const input = { argumentsDigest: "0".repeat(64), argumentsBytes: 2, argumentsPreview: "{}", at: NOON };
    const limits = { atOnce: 9, perConnector: 9, windowMs: 60_000, openMs: 90_000 };
    yield* begin({ ...call, ...tool, ...input }, limits);
    const newest = Effect.gen(function* () {
      yield* round(NOON);
      return (yield* list(projectId, { limit: 1, cursor: null })).items[0];
    });
    yield* TestClock.setTime(NOON + 5 * 60_000 - 10_000);
    expect(yield* newest).toMatchObject({ outcome: null });
    yield* TestClock.setTime(NOON + 5 * 60_000 + 1);
    expect(yield* newest).toMatchObject({ outcome: "unknown", message: ABANDONED });
  }).pipe(Effect.provide(memoryStore)),
);

it.effect("retention takes the features' step until it finds nothing", () =>
  Effect.gen(function* () {
    let left = 3;
    yield* round(NOON, () => Effect.sync(() => (left > 0 ? left-- : 0)));
    expect(left).toBe(0);
  }).pipe(Effect.provide(memoryStore)),
);
