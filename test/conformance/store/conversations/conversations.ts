/** Conformance: conversations, as sandboxes report them. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import {
  contentText,
  NO_USAGE,
  SERVICE_AUTHOR,
  type NativeItem,
} from "../../../../src/domain/conversation/conversation.ts";
import { Conversations, type Item } from "../../../../src/store/ports/sessions/conversations.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { type Check } from "../fixture.ts";
import {
  admitOne,
  admitSession,
  due,
  fired,
  openSandbox,
  tellSandbox,
  tellSession,
} from "../../../support/world/sessions.ts";
import {
  converse,
  itemsOf,
  nativeItem,
  replaceSandbox,
  report,
  tokens,
} from "../../../support/world/conversations.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";

const newest = { before: null, limit: 100 };
const textsOf = (items: readonly Item[]) =>
  items.map(({ content: [part] }) => (part?.type === "text" ? part.text : null));

const checkOpening = (check: Check): void => {
  check(
    "begins with the initial prompt, by the user who made the session, also if several callers open it",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { open, get, page, changedAfter } = yield* Conversations;
      const id = yield* admitSession(world);
      expect([yield* get(id), yield* page(id, newest), yield* changedAfter(id, 0, 9)]).toEqual([
        null,
        null,
        null,
      ]);
      const opened = yield* Effect.all([open(id, NOON + 1), open(id, NOON + 1), open(id, NOON + 1)], {
        concurrency: "unbounded",
      });
      expect(new Set(opened.map((conversation) => conversation?.seq))).toEqual(new Set([1]));
      expect(yield* open(id, NOON + 9)).toEqual(opened[0]);
      const snapshot = yield* page(id, newest);
      expect(snapshot?.conversation).toMatchObject({
        id,
        seq: 1,
        turn: { state: "idle", since: NOON + 1, waitingFor: null },
        usage: NO_USAGE,
        sandbox: null,
      });
      expect(snapshot?.items).toMatchObject([
        {
          id,
          seq: 1,
          kind: "message",
          status: "queued",
          role: "user",
          createdAt: NOON,
          nativeId: null,
          turnId: id,
        },
      ]);
      expect(textsOf(snapshot?.items ?? [])).toEqual(["Say hello."]);
      expect(snapshot?.items[0]?.author).toMatchObject({
        kind: "user",
        userId: world.userId,
        triggerSlug: null,
      });
      expect(snapshot?.queue).toEqual(snapshot?.items);
    }),
  );

  check(
    "begins with a trigger's prompt, by the trigger, and by the person who fired it",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const { open, page } = yield* Conversations;
      const authors: unknown[] = [];
      for (const request of [fired(world), due(world, NOON), fired(world, { kind: "manual" })]) {
        yield* admitOne(world, request);
        yield* open(request.session.id, NOON);
        const [first] = (yield* page(request.session.id, newest))?.items ?? [];
        expect(first?.author?.fireId).toBe(request.fire?.id);
        authors.push([
          first?.author?.kind,
          first?.author?.name,
          first?.author?.triggerSlug,
          first?.author?.userId,
        ]);
      }
      expect(authors).toEqual([
        ["trigger", "on-push", "on-push", null],
        ["trigger", "nightly", "nightly", null],
        ["trigger", "on-push", "on-push", world.userId],
      ]);
    }),
  );

  check(
    "is empty without a prompt, accepted where an older version has sent it, and null for no session",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const { open, page } = yield* Conversations;
      const silent = yield* admitSession(world, { initialPrompt: null });
      expect(yield* open(silent, NOON)).toMatchObject({ seq: 0, bytes: 0 });
      const sent = yield* admitSession(world);
      yield* (yield* Sessions).acceptBootstrap(sent, NOON + 3);
      yield* open(sent, NOON);
      expect((yield* page(sent, newest))?.items).toMatchObject([
        { status: "accepted", completedAt: NOON + 3 },
      ]);
      expect(yield* open(randomUUID(), NOON)).toBe(null);
      const deleted = yield* admitSession(world);
      yield* open(deleted, NOON);
      yield* tellSession(deleted, { type: "delete.requested" });
      const { get } = yield* Conversations;
      expect([yield* get(deleted), yield* open(deleted, NOON), yield* page(deleted, newest)]).toEqual([
        null,
        null,
        null,
      ]);
    }),
  );
};

/** One item, which is in no other report. */
const item = (rev: number) => ({ items: [nativeItem(`x${rev}`, rev)] });

const checkNotes = (check: Check): void => {
  check(
    "gets a sandbox's items in order, with ids of its own, and the turn's state",
    Effect.gen(function* () {
      const { note, page, states } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const items = [
        nativeItem("t1", 3, { kind: "tool", turn_id: "m1", status: "running", completed_at: null }),
        nativeItem("q1", 4, { kind: "request", turn_id: "m1", status: "pending", completed_at: null }),
        nativeItem("m1", 2, { role: "user", message_id: sessionId, turn_id: "m1" }),
        nativeItem("s1", 5, { role: "user", parent_id: "t1", turn_id: "m1" }),
      ];
      const turn = { state: "requires_action", waiting_for: "q1" } as const;
      const noted = yield* note(sessionId, report(sandboxId, 6, { items, turn, now: NOON + 5 }));
      const [message, tool, request, sub] = itemsOf(noted);
      expect(noted?.changes.map(({ seq, type }) => [seq, type])).toEqual([
        [2, "item"],
        [3, "item"],
        [4, "item"],
        [5, "item"],
        [6, "state"],
      ]);
      // The message stays as it was sent. It takes its place where the agent has accepted it.
      expect(message).toMatchObject({
        id: sessionId,
        nativeId: "m1",
        status: "accepted",
        completedAt: NOON + 5,
        place: 2,
      });
      expect(textsOf(message === undefined ? [] : [message])).toEqual(["Say hello."]);
      expect(message?.author?.kind).toBe("user");
      expect(tool).toMatchObject({ nativeId: "t1", turnId: sessionId, status: "running", rev: 3, sandboxId });
      expect(tool?.author).toMatchObject({ kind: "agent", name: "default" });
      expect(sub).toMatchObject({ parentId: tool?.id, author: { kind: "agent" } });
      const state = {
        turn: { state: "requires_action", since: NOON + 5, waitingFor: request?.id },
        usage: NO_USAGE,
        held: false,
      };
      const snapshot = yield* page(sessionId, newest);
      expect(snapshot).toMatchObject({
        conversation: { ...state, seq: 6, turnSeq: 6, sandbox: { id: sandboxId, rev: 6 } },
      });
      expect(snapshot?.items).toEqual([sub, request, tool, message]);
      expect([snapshot?.queue, snapshot?.requests]).toEqual([[], [request]]);
      expect(yield* states([sessionId, randomUUID()])).toEqual(new Map([[sessionId, state]]));
    }),
  );

  check(
    "names a message for what it is that reached the runtime without the platform",
    Effect.gen(function* () {
      const { note } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const items = [nativeItem("x1", 2, { role: "user", turn_id: "x1" })];
      const [message] = itemsOf(yield* note(sessionId, report(sandboxId, 3, { items, now: NOON })));
      expect(message?.author).toMatchObject({ kind: "sandbox", userId: null });
    }),
  );

  check(
    "replaces an item by its later versions, keeps its id and place, and counts its tokens once",
    Effect.gen(function* () {
      const { note, get } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const growing = { status: "running", completed_at: null } as const;
      const first = yield* note(
        sessionId,
        report(sandboxId, 2, {
          items: [nativeItem("a", 1, { ...growing, usage: tokens(10, 0.1) }), nativeItem("b", 2)],
        }),
      );
      const second = yield* note(
        sessionId,
        report(sandboxId, 4, {
          items: [
            nativeItem("a", 3, growing),
            nativeItem("a", 4, { usage: tokens(15, 0.3) }),
            nativeItem("c", 4, { usage: tokens(5, 0.2) }),
          ],
        }),
      );
      const [a1] = itemsOf(first);
      const [a2, c] = itemsOf(second);
      expect([a2?.id, a2?.place, a2?.status, a2?.rev]).toEqual([a1?.id, a1?.place, "completed", 4]);
      expect(textsOf(itemsOf(second))).toEqual(["text of a at 4", "text of c at 4"]);
      expect([a2?.seq, c?.seq, c?.place]).toEqual([5, 6, 6]);
      expect((yield* get(sessionId))?.usage).toEqual(tokens(20, 0.5));
    }),
  );

  check(
    "puts items in the order in which the agent made them, however late they come, and asks nothing twice",
    Effect.gen(function* () {
      const { note, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const open = { status: "pending", completed_at: null } as const;
      const shown = Effect.map(page(sessionId, newest), (found) =>
        (found?.items ?? []).flatMap(({ nativeId }) => nativeId ?? []).toReversed(),
      );
      const told = Effect.fnUntraced(function* (...native: readonly NativeItem[]) {
        const rev = Math.max(...native.map((version) => version.rev));
        return yield* note(sessionId, report(sandboxId, rev, { items: native }));
      });
      yield* told(nativeItem("said first", 1, { order: 10 }));
      // In one report, the text that ended last was begun first.
      yield* told(
        nativeItem("tool", 2, { order: 30, ...open }),
        nativeItem("question", 3, { order: 50, kind: "request", ...open }),
        nativeItem("text", 4, { order: 20 }),
      );
      expect(yield* shown).toEqual(["said first", "text", "tool", "question"]);
      const late = yield* told(nativeItem("thought", 5, { order: 25 }), nativeItem("last", 6, { order: 60 }));
      expect(yield* shown).toEqual(["said first", "text", "thought", "tool", "question", "last"]);
      expect(itemsOf(late).map(({ nativeId }) => nativeId)).toEqual([
        "thought",
        "last",
        "tool",
        "question",
        "last",
      ]);
      expect(late?.changes.map(({ seq }) => seq)).toEqual([6, 7, 8, 9, 10]);
      // The person's message is accepted only now, although it began all that.
      yield* told(nativeItem("message", 7, { order: 5, role: "user", message_id: sessionId }));
      expect(yield* shown).toEqual(["message", "said first", "text", "thought", "tool", "question", "last"]);
      expect((yield* page(sessionId, newest))?.requests.map(({ rev }) => rev)).toEqual([3]);
    }),
  );

  check(
    "says of a message that reached the runtime without the service that it came from inside the sandbox",
    Effect.gen(function* () {
      const { note } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const told = (id: string, rev: number, more: Partial<NativeItem>) =>
        note(sessionId, report(sandboxId, rev, { items: [nativeItem(id, rev, more)] }));
      const inside = { role: "user", message_id: null } as const;
      expect(itemsOf(yield* told("by itself", 1, inside))).toMatchObject([
        { author: { kind: "sandbox", userId: null, name: "Sent from inside the sandbox" } },
      ]);
      // An agent's own words to its sub-agent.
      expect(itemsOf(yield* told("to a child", 2, { ...inside, parent_id: "by itself" }))).toMatchObject([
        { author: { kind: "agent" } },
      ]);
    }),
  );

  check(
    "keeps notes of the service, and waiting messages, behind the item behind which they stand when a late one comes",
    Effect.gen(function* () {
      const { addNote, note, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const shown = Effect.map(page(sessionId, newest), (found) =>
        (found?.items ?? [])
          .flatMap(({ nativeId, kind, content }) => nativeId ?? (kind === "note" ? contentText(content) : []))
          .toReversed(),
      );
      const told = (...native: readonly NativeItem[]) =>
        note(sessionId, report(sandboxId, Math.max(...native.map(({ rev }) => rev)), { items: native }));
      const says = (text: string) =>
        addNote(sessionId, { id: randomUUID(), text, author: SERVICE_AUTHOR, at: NOON });
      yield* told(nativeItem("said first", 1, { order: 10 }));
      yield* says("before the tool");
      yield* told(nativeItem("tool", 2, { order: 30 }));
      yield* says("during the tool");
      yield* told(nativeItem("question", 3, { order: 50 }));
      yield* says("during the question");
      yield* told(nativeItem("text", 4, { order: 40 }));
      yield* told(nativeItem("thought", 5, { order: 20 }));
      expect(yield* shown).toEqual([
        "said first",
        "before the tool",
        "thought",
        "tool",
        "during the tool",
        "text",
        "question",
        "during the question",
      ]);
    }),
  );

  check(
    "takes a turn that comes after the last version before it was written, once",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { note, get } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(world);
      const asks = { state: "requires_action", waiting_for: "ask" } as const;
      yield* note(sessionId, report(sandboxId, 3, { ...asking(3, "pending"), turn: asks }));
      // The answer is written, and then the state of the turn, which has the same number.
      yield* note(sessionId, report(sandboxId, 4, asking(4, "completed")));
      const turn = { state: "running", waiting_for: null } as const;
      const late = report(sandboxId, 4, { items: [], turn, now: NOON + 7 });
      expect((yield* note(sessionId, late))?.changes).toMatchObject([
        { type: "state", turn: { state: "running" } },
      ]);
      const known = yield* get(sessionId);
      expect(known?.turn).toEqual({ state: "running", since: NOON + 7, waitingFor: null });
      expect(yield* note(sessionId, late)).toEqual({ conversation: known, changes: [] });
    }),
  );

  check(
    "does not change by a report that came before, nor by one of a former, ended or foreign sandbox [D10]",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { note, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(world);
      const other = yield* converse(world);
      yield* note(sessionId, report(sandboxId, 5, item(5)));
      const before = yield* page(sessionId, newest);
      const unchanged = { conversation: before?.conversation, changes: [] };
      const running = { state: "running", waiting_for: null } as const;
      expect(yield* note(sessionId, report(sandboxId, 5, item(9)))).toEqual(unchanged);
      expect(yield* note(sessionId, report(sandboxId, 4, { ...item(9), turn: running }))).toEqual(unchanged);
      expect(yield* note(sessionId, report(sandboxId, 4, item(4)))).toEqual(unchanged);
      expect(yield* note(sessionId, report(other.sandboxId, 9, item(9)))).toBe(null);
      expect(yield* note(randomUUID(), report(sandboxId, 9, item(9)))).toBe(null);
      const unopened = yield* admitSession(world);
      const { id } = yield* openSandbox(unopened);
      expect(yield* note(unopened, report(id, 1, item(1)))).toBe(null);
      expect(yield* page(sessionId, newest)).toEqual(before);
      // The sandbox ends. It is still the session's current one.
      yield* tellSandbox(sandboxId, { type: "stop.requested" });
      expect(yield* note(sessionId, report(sandboxId, 9, item(9)))).toBe(null);
      const next = (yield* openSandbox(sessionId)).id;
      expect(yield* note(sessionId, report(sandboxId, 10, item(10)))).toBe(null);
      expect(yield* page(sessionId, newest)).toEqual(before);
      // The numbers of another sandbox begin again.
      const noted = yield* note(sessionId, report(next, 1, { items: [nativeItem("x1", 1)] }));
      expect(noted?.conversation.sandbox).toEqual({ id: next, rev: 1, order: null });
      expect(itemsOf(noted)).toMatchObject([{ nativeId: "x1", sandboxId: next }]);
    }),
  );

  check(
    "keeps a closed item's status, and lets a new sandbox continue only what is open",
    Effect.gen(function* () {
      const { note, close, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const running = { status: "running", completed_at: null } as const;
      const items = [nativeItem("done", 1), nativeItem("open", 2, running), nativeItem("cut", 3, running)];
      yield* note(sessionId, report(sandboxId, 3, { items }));
      const cut = yield* note(
        sessionId,
        report(sandboxId, 4, { items: [nativeItem("cut", 4, { status: "interrupted" })] }),
      );
      expect(itemsOf(cut)).toMatchObject([{ status: "interrupted" }]);
      const late = yield* note(sessionId, report(sandboxId, 5, { items: [nativeItem("cut", 5)] }));
      expect(itemsOf(late)).toMatchObject([{ status: "interrupted", rev: 5 }]);
      expect(textsOf(itemsOf(late))).toEqual(["text of cut at 5"]);
      const next = yield* replaceSandbox(sessionId, sandboxId);
      const again = ["done", "open", "cut"].map((id, index) => nativeItem(id, index + 1));
      const noted = yield* note(sessionId, report(next, 3, { items: again }));
      expect(itemsOf(noted)).toMatchObject([
        { nativeId: "open", status: "completed", sandboxId: next, rev: 2 },
      ]);
      // The new sandbox has taken over the open item of the former one.
      expect((yield* close(sessionId, { sandboxId, as: "lost", now: NOON }))?.changes).toEqual([]);
      expect((yield* page(sessionId, newest))?.items).toHaveLength(4);
    }),
  );

  check(
    "takes a note of the service once, as its last item",
    Effect.gen(function* () {
      const { addNote, page } = yield* Conversations;
      const { sessionId } = yield* converse(yield* makeWorld(5));
      const note = { id: randomUUID(), text: "The limit changed.", author: SERVICE_AUTHOR, at: NOON + 1 };
      expect(yield* addNote(sessionId, note)).toBe(true);
      expect(yield* addNote(sessionId, note)).toBe(false);
      expect(yield* addNote(randomUUID(), note)).toBe(false);
      const { items = [], conversation } = (yield* page(sessionId, newest)) ?? {};
      expect(items[0]).toMatchObject({
        id: note.id,
        kind: "note",
        author: SERVICE_AUTHOR,
        seq: conversation?.seq,
      });
      expect(textsOf(items).filter((text) => text === note.text)).toHaveLength(1);
    }),
  );

  check(
    "closes the open items and the turn of a sandbox that ended, once",
    Effect.gen(function* () {
      const { note, close, get } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const items = [
        nativeItem("done", 1),
        nativeItem("tool", 2, { kind: "tool", status: "running", completed_at: null }),
        nativeItem("ask", 3, { kind: "request", status: "pending", completed_at: null }),
      ];
      const turn = { state: "requires_action", waiting_for: "ask" } as const;
      yield* note(sessionId, report(sandboxId, 3, { items, turn }));
      yield* tellSandbox(sandboxId, { type: "stop.requested" });
      const end = { sandboxId, as: "lost", now: NOON + 9 } as const;
      const closed = yield* close(sessionId, end);
      expect(itemsOf(closed)).toMatchObject([
        { nativeId: "tool", status: "lost", completedAt: NOON + 9 },
        { nativeId: "ask", status: "lost", completedAt: NOON + 9 },
      ]);
      expect((yield* get(sessionId))?.turn).toEqual({ state: "idle", since: NOON + 9, waitingFor: null });
      expect(yield* close(sessionId, end)).toEqual({ conversation: closed?.conversation, changes: [] });
      expect(yield* close(randomUUID(), end)).toBe(null);
      // A message that waits is not the sandbox's.
      const { page } = yield* Conversations;
      expect((yield* page(sessionId, newest))?.queue).toMatchObject([{ id: sessionId, status: "queued" }]);
    }),
  );
};

/** A request of the agent, and nothing else. */
const asking = (rev: number, status: "pending" | "completed") => ({
  items: [nativeItem("ask", rev, { kind: "request", status })],
});

export const checkConversations = (check: Check): void => {
  describe("a conversation", () => {
    checkOpening(check);
    checkNotes(check);
  });
};
