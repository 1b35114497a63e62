import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { HISTORY_BYTES_MAX } from "../../src/domain/conversation/history.ts";
import { readRecap } from "../../src/services/sessions/recap.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { Conversations } from "../../src/store/ports/sessions/conversations.ts";
import { converse, nativeItem, nativeTool, report } from "../support/world/conversations.ts";
import { ADA, reported, step } from "../support/world/conversation-steps.ts";
import { admitSession, openSandbox } from "../support/world/sessions.ts";
import { addProject, makeWorld, NOON } from "../support/world/world.ts";

/** What a fresh sandbox of the session gets. */
const recapOf = Effect.fnUntraced(function* (sessionId: string) {
  const session = yield* (yield* Sessions).get(sessionId);
  return session === null ? yield* Effect.die("no such session") : yield* readRecap(session);
});

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
      expect(yield* recapOf(sessionId)).toBeNull();
      yield* (yield* Conversations).open(sessionId, NOON);
      expect(yield* recapOf(sessionId)).toBeNull();
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
      const { text, history, ...choice } = (yield* recapOf(sessionId)) ?? { text: "" };
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
      expect(yield* recapOf(sessionId)).toMatchObject({ model: "p/m", effort: "high" });
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
      const { history } = (yield* recapOf(sessionId)) ?? {};
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

/** A session of three turns, and ways to begin another one from it. */
const beginnings = Effect.gen(function* () {
  const made = yield* makeWorld(5);
  const { sessionId, sandboxId } = yield* converse(made);
  const { note } = yield* Conversations;
  const turns = ["one", "two", "three"].flatMap((turn, at) => {
    const fields = { turn_id: turn, created_at: NOON + at - 1 };
    return [
      nativeItem(turn, 2 * at + 1, { ...fields, role: "user", turn_id: null }),
      nativeItem(`answer ${turn}`, 2 * at + 2, { ...fields, model: "p/m" }),
    ];
  });
  yield* note(sessionId, report(sandboxId, 9, { items: turns }));
  const { items } = (yield* (yield* Conversations).page(sessionId, { before: null, limit: 9 })) ?? {};
  const second = items?.find(({ nativeId }) => nativeId === "answer two")?.turnId;
  const begin = (from: object, fields: object = {}) =>
    admitSession(made, { metadata: { begun_from: { title: "Rename it", at: null, ...from } }, ...fields });
  return { made, sessionId, second, begin };
});

/** The words of messages in a history. */
const saidIn = (recap: Effect.Success<ReturnType<typeof recapOf>>) =>
  recap?.history?.items.map(({ text }) => text.replace("text of ", "").replace(/ at \d+$/, ""));

const UNTIL_BEGUN = ["one", "answer one", "two", "answer two"];

describe("the recap for a session that begins from another one", () => {
  check(
    "has the other one's conversation up to the turn, and chooses nothing",
    Effect.gen(function* () {
      const { sessionId, second, begin } = yield* beginnings;
      const recap = yield* recapOf(yield* begin({ session_id: sessionId, turn_id: second }));
      expect(saidIn(recap)).toEqual(UNTIL_BEGUN);
      expect(recap).toMatchObject({ begun: "Rename it", agent: null, model: null });
      expect(recap?.text).toMatch(/^This session began from another one, "Rename it"/);
      expect(recap?.text).toContain("answer two");
      expect(recap?.text).not.toContain("three");
    }),
  );

  check(
    "has what was said until it began, before its own conversation, also over several beginnings",
    Effect.gen(function* () {
      const { sessionId, begin } = yield* beginnings;
      const middle = yield* begin({ session_id: sessionId });
      const { note, open } = yield* Conversations;
      yield* open(middle, NOON);
      const { id: sandboxId } = yield* openSandbox(middle);
      const own = nativeItem("own", 1, { created_at: NOON });
      yield* note(middle, report(sandboxId, 1, { items: [own] }));
      const restarted = yield* recapOf(middle);
      // The other one's third turn is later than the beginning.
      expect(saidIn(restarted)).toEqual([...UNTIL_BEGUN, "own"]);
      expect(restarted).not.toHaveProperty("begun");
      expect(restarted?.text).toMatch(/^This session continues in a new sandbox/);
      expect(saidIn(yield* recapOf(yield* begin({ session_id: middle })))).toEqual([...UNTIL_BEGUN, "own"]);
    }),
  );

  check(
    "is empty for an unknown session, of another project's, or of a turn that it does not have",
    Effect.gen(function* () {
      const { made, sessionId, begin } = yield* beginnings;
      expect(yield* recapOf(yield* begin({ session_id: randomUUID() }))).toBeNull();
      expect(yield* recapOf(yield* begin({ session_id: sessionId, turn_id: "four" }))).toBeNull();
      const projectId = yield* addProject(made);
      expect(yield* recapOf(yield* begin({ session_id: sessionId }, { projectId }))).toBeNull();
    }),
  );
});
