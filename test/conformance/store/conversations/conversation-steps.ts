/** Conformance: the memory of a conversation's actor, and the items that its steps write. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { isClosed } from "../../../../src/domain/conversation/growing.ts";
import { Conversations, type Item } from "../../../../src/store/ports/sessions/conversations.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { type Check } from "../fixture.ts";
import { ADA, posted, reported, step } from "../../../support/world/conversation-steps.ts";
import { converse, nativeItem, report } from "../../../support/world/conversations.ts";
import { tellSession } from "../../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";

const itemOf = (sessionId: string, id: string) =>
  Effect.flatMap(Conversations, ({ item }) =>
    Effect.flatMap(item(sessionId, id), (found) =>
      found === null ? Effect.die(`the item ${id} is missing`) : Effect.succeed<Item>(found),
    ),
  );

/** A conversation whose runtime rests, with the ids of two messages. */
const atRest = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const { sessionId, sandboxId } = yield* converse(world);
  yield* step(sessionId, reported(sandboxId, 0));
  return { world, sessionId, sandboxId, one: randomUUID(), two: randomUUID() };
});

const checkMessages = (check: Check): void => {
  check(
    "writes a message with the step that takes it, as sent or as waiting",
    Effect.gen(function* () {
      const { sessionId, one, two } = yield* atRest;
      const { pending } = yield* step(sessionId, posted(one), { now: NOON + 1 });
      expect(pending.map(({ command }) => command)).toMatchObject([{ type: "sendMessage", messageId: one }]);
      yield* step(sessionId, posted(two), { now: NOON + 2 });
      expect(yield* itemOf(sessionId, one)).toMatchObject({
        kind: "message",
        role: "user",
        author: ADA,
        status: "sending",
        content: [{ type: "text", text: `text of ${one}` }],
        model: "p/m",
        agent: "build",
        sentAt: NOON + 1,
        createdAt: NOON + 1,
        completedAt: null,
      });
      expect(yield* itemOf(sessionId, two)).toMatchObject({ status: "queued", sentAt: null });
      const { page } = yield* Conversations;
      const found = yield* page(sessionId, { before: null, limit: 10 });
      // The initial prompt has the session's id.
      expect(found?.queue.map(({ id }) => id)).toEqual([sessionId, one, two]);
    }),
  );

  check(
    "moves an accepted message to the end of the conversation, once",
    Effect.gen(function* () {
      const { sessionId, sandboxId, one } = yield* atRest;
      yield* step(sessionId, posted(one));
      yield* (yield* Conversations).note(
        sessionId,
        report(sandboxId, 1, { items: [nativeItem("later", 1)] }),
      );
      const before = yield* itemOf(sessionId, one);
      yield* step(
        sessionId,
        { type: "message.accepted", messageId: one, sandboxId, turn: 1 },
        { now: NOON + 5 },
      );
      const after = yield* itemOf(sessionId, one);
      expect(after).toMatchObject({ status: "accepted", completedAt: NOON + 5 });
      expect(after.place).toBeGreaterThan(before.place);
      // The runtime's own report of the message leaves it as it is.
      const items = [nativeItem("native", 2, { role: "user", message_id: one, content: [] })];
      yield* (yield* Conversations).note(sessionId, report(sandboxId, 2, { items }));
      expect(yield* itemOf(sessionId, one)).toMatchObject({
        status: "accepted",
        place: after.place,
        content: after.content,
      });
    }),
  );

  check(
    "puts an accepted message behind the items that the agent made before it and that were reported later",
    Effect.gen(function* () {
      const { sessionId, sandboxId, one } = yield* atRest;
      const { note } = yield* Conversations;
      yield* step(sessionId, posted(one));
      yield* step(sessionId, { type: "message.accepted", messageId: one, sandboxId, turn: 1 });
      const before = nativeItem("end of the turn before", 1, { order: 1 });
      yield* note(sessionId, report(sandboxId, 1, { items: [before] }));
      const message = nativeItem("native", 2, { order: 2, role: "user", message_id: one, content: [] });
      const answer = nativeItem("answer", 3, { order: 3 });
      yield* note(sessionId, report(sandboxId, 3, { items: [message, answer] }));
      const found = yield* (yield* Conversations).page(sessionId, { limit: 10, before: null });
      expect(found?.items.flatMap(({ nativeId }) => nativeId ?? []).toReversed()).toEqual([
        "end of the turn before",
        "native",
        "answer",
      ]);
    }),
  );

  check(
    "lets a message wait again that the runtime could not take, without its time of sending",
    Effect.gen(function* () {
      const { sessionId, sandboxId, one } = yield* atRest;
      yield* step(sessionId, posted(one));
      yield* step(sessionId, { type: "message.deferred", messageId: one, sandboxId, turn: 1 });
      expect(yield* itemOf(sessionId, one)).toMatchObject({ status: "queued", sentAt: null });
      yield* step(sessionId, reported(sandboxId, 1), { now: NOON + 9 });
      expect(yield* itemOf(sessionId, one)).toMatchObject({ status: "sending", sentAt: NOON + 9 });
    }),
  );

  check(
    "closes messages that a person cancels or the runtime refuses",
    Effect.gen(function* () {
      const { sessionId, sandboxId, one, two } = yield* atRest;
      yield* step(sessionId, posted(one));
      yield* step(sessionId, posted(two));
      yield* step(sessionId, { type: "message.cancelled", messageId: two }, { now: NOON + 3 });
      const error = { code: "unknown_agent", message: "There is no such agent." };
      yield* step(
        sessionId,
        { type: "message.refused", messageId: one, sandboxId, error },
        { now: NOON + 4 },
      );
      expect(yield* itemOf(sessionId, two)).toMatchObject({ status: "cancelled", completedAt: NOON + 3 });
      expect(yield* itemOf(sessionId, one)).toMatchObject({ status: "failed", error, completedAt: NOON + 4 });
    }),
  );

  check(
    "tells readers that the queue is held, and that it goes on",
    Effect.gen(function* () {
      const { sessionId, sandboxId, one, two } = yield* atRest;
      const { get } = yield* Conversations;
      const isHeld = Effect.map(get(sessionId), (found) => found?.held);
      yield* step(sessionId, posted(one));
      yield* step(sessionId, { type: "message.accepted", messageId: one, sandboxId, turn: 1 });
      yield* step(sessionId, posted(two));
      yield* step(sessionId, { type: "interrupt.requested" });
      expect(yield* isHeld).toBe(true);
      yield* step(sessionId, { type: "queue.resumed" });
      expect(yield* isHeld).toBe(false);
    }),
  );

  check(
    "keeps the answer to a request with who gave it",
    Effect.gen(function* () {
      const { sessionId, sandboxId } = yield* atRest;
      const request = { kind: "permission", title: "bash", patterns: [], questions: [] } as const;
      const asks = nativeItem("ask", 1, { kind: "request", status: "running", request, completed_at: null });
      const { note, page } = yield* Conversations;
      yield* note(sessionId, report(sandboxId, 1, { items: [asks] }));
      const [open] = (yield* page(sessionId, { before: null, limit: 10 }))?.requests ?? [];
      const id = open?.id ?? "";
      yield* step(sessionId, {
        type: "runtime.reported",
        sandboxId,
        seq: 0,
        ended: 0,
        isWorking: true,
        plans: [],
        requests: [id],
        isAttended: true,
      });
      const answer = { choice: "once", message: null } as const;
      const { pending } = yield* step(
        sessionId,
        { type: "answer.given", requestId: id, answer, by: ADA },
        { now: NOON + 7 },
      );
      expect(pending.map(({ command }) => command)).toMatchObject([
        { type: "answerRequest", requestId: id, answer },
      ]);
      const item = yield* itemOf(sessionId, id);
      expect(item.answer).toEqual({ by: ADA, at: NOON + 7, answer });
      expect(isClosed(item.status)).toBe(false);
    }),
  );

  check(
    "finds a session by what a person answered, in her words or by choosing",
    Effect.gen(function* () {
      const { world, sessionId, sandboxId } = yield* atRest;
      const { note, page } = yield* Conversations;
      const { list } = yield* Sessions;
      const found = (search: string) =>
        Effect.map(list(world.projectId, { limit: 9, cursor: null, status: null, search }), ({ items }) =>
          items.map(({ hit }) => hit?.text ?? null),
        );
      const answers = [
        { answers: [["Both of them"], ["In a porcupine"]] },
        { choice: "reject", message: "Leave the aardvark alone." },
        { choice: "once", message: null },
      ] as const;
      for (const [at, answer] of answers.entries()) {
        const request = { kind: "question", title: "unicorn", patterns: [], questions: [] } as const;
        const asks = nativeItem(`ask ${at}`, 1, {
          kind: "request",
          status: "running",
          request,
          completed_at: null,
        });
        yield* note(sessionId, report(sandboxId, at + 1, { items: [asks] }));
        const id = (yield* page(sessionId, { before: null, limit: 10 }))?.requests.at(-1)?.id ?? "";
        yield* step(sessionId, { type: "runtime.reported", sandboxId, seq: at, ended: 0, isWorking: true, plans: [], requests: [id], isAttended: true }); // prettier-ignore
        yield* step(sessionId, { type: "answer.given", requestId: id, answer, by: ADA }, { now: NOON + at });
      }
      expect(yield* found("porcu both")).toEqual(["Both of them In a porcupine"]);
      expect(yield* found("aardvark")).toEqual(["Leave the aardvark alone."]);
      expect([yield* found("unicorn"), yield* found("once")]).toEqual([[], []]);
    }),
  );
};

const checkMemory = (check: Check): void => {
  check(
    "writes nothing for a step that was fenced",
    Effect.gen(function* () {
      const { sessionId, one } = yield* atRest;
      const { memory, item, get } = yield* Conversations;
      const before = [yield* memory.load(sessionId), yield* get(sessionId)];
      const refused = yield* Effect.flip(step(sessionId, posted(one), { version: 0 }));
      expect(refused).toMatchObject({ _tag: "Fenced", id: sessionId });
      expect([yield* memory.load(sessionId), yield* get(sessionId)]).toEqual(before);
      expect(yield* item(sessionId, one)).toBe(null);
    }),
  );

  check(
    "keeps a command until its outcome is saved, and is unsettled as long",
    Effect.gen(function* () {
      const { sessionId, sandboxId, one } = yield* atRest;
      const { memory, unsettled } = yield* Conversations;
      const left = Effect.map(memory.load(sessionId), (loaded) => loaded?.pending.map(({ id }) => id));
      const isUnsettled = Effect.map(unsettled, (all) => all.some(({ id }) => id === sessionId));
      const { pending } = yield* step(sessionId, posted(one));
      const [sent] = pending;
      expect([yield* left, yield* isUnsettled]).toEqual([[sent?.id], true]);
      const accepted = { type: "message.accepted", messageId: one, sandboxId, turn: 1 } as const;
      yield* step(sessionId, accepted, { completes: sent?.id ?? "" });
      expect([yield* left, yield* isUnsettled]).toEqual([[], false]);
      const ordered = yield* step(sessionId, { type: "interrupt.requested" });
      yield* memory.complete(sessionId, [...ordered.pending.map(({ id }) => id), "0", randomUUID()]);
      expect([yield* left, yield* isUnsettled]).toEqual([[], false]);
    }),
  );

  check(
    "forgets the commands of a deleted session",
    Effect.gen(function* () {
      const { sessionId, one } = yield* atRest;
      const { memory, unsettled } = yield* Conversations;
      yield* step(sessionId, posted(one));
      yield* tellSession(sessionId, { type: "delete.requested" });
      expect(yield* memory.load(sessionId)).toBe(null);
      expect((yield* unsettled).filter(({ id }) => id === sessionId)).toEqual([]);
    }),
  );
};

export const checkConversationSteps = (check: Check): void => {
  describe("the actor of a conversation", () => {
    checkMessages(check);
    checkMemory(check);
  });
};
