/** Conformance: a conversation with a hostile sandbox, and its signals. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { type Check } from "../fixture.ts";
import { converse, nativeItem, itemsOf, report, tokens } from "../../../support/world/conversations.ts";
import { makeWorld } from "../../../support/world/world.ts";

const newest = { before: null, limit: 100 };

const checkHostile = (check: Check): void => {
  check(
    "stores what a hostile sandbox reports, made harmless",
    Effect.gen(function* () {
      const { note, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const bad = "a\0b\ud800c";
      const deep = Array.from({ length: 5_000 }).reduce<unknown>((inner) => [inner], "deep");
      const input = { [bad]: [bad, -0, Number.MAX_VALUE, { deep }], ["__proto__"]: { own: bad } };
      const tool = {
        name: bad,
        kind: "other",
        title: bad,
        input,
        output: bad.repeat(40_000),
        truncated: false,
        changes: [],
      } as const;
      const items = [
        nativeItem(bad, 1, {
          message_id: "not an id",
          turn_id: bad,
          content: [{ type: "text", text: bad }],
          model: bad,
        }),
        nativeItem("n".repeat(100_000), 2, {
          created_at: 1e300,
          completed_at: -1e300,
          usage: tokens(-5, -1),
        }),
        nativeItem("tool", 3, { kind: "tool", tool, usage: tokens(Number.MAX_VALUE, 1) }),
        nativeItem("large", 4, { content: [{ type: "text", text: "ü".repeat(2 ** 22) }] }),
        nativeItem("self", 1e300, { turn_id: "self", parent_id: "self", error: { code: bad, message: bad } }),
      ];
      const turn = { state: "running", waiting_for: bad } as const;
      const noted = yield* note(sessionId, report(sandboxId, 1e300, { items, turn }));
      const [first, second, third, large, last] = itemsOf(noted);
      expect(first).toMatchObject({
        nativeId: "ab\ufffdc",
        model: "ab\ufffdc",
        content: [{ text: "ab\ufffdc" }],
      });
      expect(second).toMatchObject({ createdAt: 253_402_300_799_999, completedAt: 0, usage: tokens(0, 0) });
      expect(second?.nativeId).toHaveLength(64);
      expect(third?.tool).toMatchObject({ name: "ab\ufffdc", truncated: true, changes: [] });
      expect(Buffer.byteLength(third?.tool?.output ?? "")).toBeGreaterThan(65_530);
      expect(Buffer.byteLength(third?.tool?.output ?? "")).toBeLessThanOrEqual(65_536);
      expect(JSON.stringify(third?.tool?.input)).toContain(
        '"ab\ufffdc":["ab\ufffdc",0,1.7976931348623157e+308,',
      );
      expect(large).toMatchObject({ content: [], pruned: true });
      expect(last?.rev).toBe(Number.MAX_SAFE_INTEGER);
      expect(noted?.conversation.turn.waitingFor).toBe(first?.id);
      const snapshot = yield* page(sessionId, newest);
      expect(snapshot?.conversation).toEqual(noted?.conversation);
      expect(snapshot?.items.slice(0, 5)).toEqual(itemsOf(noted).toReversed());
    }),
  );

  check(
    "does not let a sandbox take over a message that it did not get, or another one's id",
    Effect.gen(function* () {
      const { note, page } = yield* Conversations;
      const world = yield* makeWorld(5);
      const { sessionId, sandboxId } = yield* converse(world);
      const forged = nativeItem("m1", 1, { message_id: sessionId, role: "agent", kind: "note" });
      yield* note(sessionId, report(sandboxId, 1, { items: [forged] }));
      // A second native message with the id of the first is an item of its own.
      yield* note(
        sessionId,
        report(sandboxId, 3, {
          items: [
            { ...forged, rev: 2 },
            { ...forged, native_id: "m2", rev: 3 },
          ],
        }),
      );
      const [other, message] = (yield* page(sessionId, newest))?.items ?? [];
      expect(message).toMatchObject({
        id: sessionId,
        kind: "message",
        role: "user",
        author: { userId: world.userId },
      });
      expect(other).toMatchObject({ nativeId: "m2", kind: "note", author: { kind: "agent" } });
    }),
  );
};

const checkSignals = (check: Check): void => {
  check(
    "wakes readers that wait for its changes",
    Effect.gen(function* () {
      const { note, changed } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const waiting = yield* Effect.forkChild(changed(sessionId), { startImmediately: true });
      yield* note(sessionId, report(sandboxId, 1, { items: [nativeItem("a", 1)] }));
      yield* Fiber.join(waiting);
    }),
  );
};

export const checkConversationAttacks = (check: Check): void => {
  describe("a conversation", () => {
    checkHostile(check);
    checkSignals(check);
  });
};
