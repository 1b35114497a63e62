import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { HISTORY_BYTES_MAX } from "../../src/domain/conversation/history.ts";
import { readRecap } from "../../src/services/sessions/recap.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Conversations } from "../../src/store/ports/sessions/conversations.ts";
import { converse, nativeItem, nativeTool, report } from "../support/world/conversations.ts";
import { ADA, reported, step } from "../support/world/conversation-steps.ts";
import { admitSession } from "../support/world/sessions.ts";
import { makeWorld, NOON } from "../support/world/world.ts";

const check = <E>(name: string, test: Effect.Effect<void, E, Effect.Services<typeof world>>) =>
  it.live(name, () => Effect.provide(test, memoryStore, { local: true }));
const world = Effect.flatMap(makeWorld(5), converse);

const POSTED = {
  type: "message.posted",
  messageId: "",
  isUrgent: false,
  message: { author: ADA, text: "Go on.", files: [], model: "p/m", agent: "build" },
} as const;

describe("the recap for a fresh sandbox", () => {
  check(
    "has nothing while no sandbox had the prompt",
    Effect.gen(function* () {
      const sessionId = yield* admitSession(yield* makeWorld(5));
      expect(yield* readRecap(sessionId)).toBeNull();
      yield* (yield* Conversations).open(sessionId, NOON);
      expect(yield* readRecap(sessionId)).toBeNull();
    }),
  );

  check(
    "has the first message and the newest items of a long conversation",
    Effect.gen(function* () {
      const { sessionId, sandboxId } = yield* world;
      const { note } = yield* Conversations;
      const prompt = nativeItem("prompt", 1, { role: "user", message_id: sessionId });
      yield* note(sessionId, report(sandboxId, 1, { items: [prompt] }));
      const answers = Array.from({ length: 250 }, (_, n) => nativeItem(`a${n}`, n + 2));
      yield* note(sessionId, report(sandboxId, 300, { items: answers }));
      const { text, history, ...choice } = (yield* readRecap(sessionId)) ?? { text: "" };
      expect(choice).toEqual({ agent: null, model: null });
      const entries = text.split("\n\n").slice(1);
      expect(entries).toHaveLength(202);
      expect(entries[0]).toContain("Say hello.");
      expect(entries[1]).toBe("[Earlier entries are left out here.]");
      expect(entries[2]).toContain("text of a50 at 52");
      expect(entries.at(-1)).toContain("You: text of a249 at 251");
      expect(history?.summary).toBeNull();
      expect(history?.items.map((item) => item.text)).toEqual([
        "Say hello.",
        ...answers.map((_, n) => `text of a${n} at ${n + 2}`),
      ]);
    }),
  );

  check(
    "names the effort of the newest message that the agent got",
    Effect.gen(function* () {
      const { sessionId, sandboxId } = yield* world;
      const say = (messageId: string, effort: string) =>
        step(sessionId, { ...POSTED, messageId, message: { ...POSTED.message, effort } });
      yield* step(sessionId, reported(sandboxId, 0));
      yield* say("first", "high");
      yield* step(sessionId, { type: "message.accepted", messageId: "first", sandboxId, turn: 1 });
      yield* say("second", "low");
      expect(yield* readRecap(sessionId)).toMatchObject({ model: "p/m", effort: "high" });
    }),
  );

  check(
    "comes with a bounded history, and a summary of what that leaves out",
    Effect.gen(function* () {
      const { sessionId, sandboxId } = yield* world;
      const { note } = yield* Conversations;
      const prompt = nativeItem("prompt", 1, { role: "user", message_id: sessionId });
      yield* note(sessionId, report(sandboxId, 1, { items: [prompt] }));
      const outputs = Array.from({ length: 600 }, (_, n) =>
        nativeTool(`t${n}`, n + 2, `${n} ${"x".repeat(9000)}`),
      );
      yield* note(sessionId, report(sandboxId, 700, { items: outputs }));
      const { history } = (yield* readRecap(sessionId)) ?? {};
      expect(Buffer.byteLength(JSON.stringify(history))).toBeLessThan(HISTORY_BYTES_MAX + 50 * 1024);
      expect(history?.items.at(-1)?.tool?.output).toMatch(/^599 x/);
      const [, first, gap, ...others] = history?.summary?.split("\n\n") ?? [];
      expect([first, gap]).toEqual([
        expect.stringContaining("Say hello."),
        "[Earlier entries are left out here.]",
      ]);
      expect(others.length).toBeGreaterThanOrEqual(100);
      // Older items are not read at all.
      expect(others.length + (history?.items.length ?? 0)).toBeLessThan(600);
    }),
  );
});
