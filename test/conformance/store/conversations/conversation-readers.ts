/** Conformance: readers of a conversation, its writers, and the files beside it. */
import { createHash, randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { ATTACHMENT_MAX } from "../../../../src/domain/conversation/attachment.ts";
import type { NativeItem } from "../../../../src/domain/conversation/conversation.ts";
import {
  ATTACHMENT_UNUSED_MS,
  CHANGES_BEHIND_MAX,
  Conversations,
  CONVERSATION_KEPT_MAX,
  CONVERSATION_TRIM_TO,
} from "../../../../src/store/ports/sessions/conversations.ts";
import { type Check } from "../fixture.ts";
import { tellSession } from "../../../support/world/sessions.ts";
import {
  converse,
  nativeItem,
  nativeTool,
  Reader,
  replaceSandbox,
  report,
  tokens,
} from "../../../support/world/conversations.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";

const everything = { before: null, limit: 10_000 };

/** Reads up to `limit` changes at a time until there are no more. */
const readOn = Effect.fnUntraced(function* (sessionId: string, reader: Reader, limit: number) {
  const { changedAfter } = yield* Conversations;
  for (;;) {
    const read = yield* changedAfter(sessionId, reader.seq, limit);
    expect(read?.reset).toBe(false);
    reader.apply(read?.changes ?? []);
    reader.seq = read?.seq ?? reader.seq;
    if ((read?.changes.length ?? 0) < limit) return;
  }
});

/** Reports of a turn with growing items, one that begins and one that ends in each. */
const reportsOf = (sandboxId: string, count: number) =>
  Array.from({ length: count }, (_, step) => {
    const rev = 10 * (step + 1);
    const growing = { status: "running", completed_at: null, usage: tokens(step, 0.25) } as const;
    const items: readonly NativeItem[] = [
      nativeItem(`i${step - 1}`, rev - 3),
      nativeItem(`i${step}`, rev - 2, growing),
      nativeItem("long", rev - 1, { ...growing, usage: null }),
    ];
    const turn = { state: step % 3 === 0 ? "idle" : "running", waiting_for: null } as const;
    return report(sandboxId, rev, { items, turn, now: NOON + step });
  });

const checkReaders = (check: Check): void => {
  check(
    "is the same for a reader that was cut anywhere as for one that read once [D03]",
    Effect.gen(function* () {
      const { note, changedAfter } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const [oneByOne, lagging, readers] = [new Reader(), new Reader(), [new Reader()]];
      for (const step of reportsOf(sandboxId, 24)) {
        yield* note(sessionId, step);
        // A new reader for each instant at which one may be cut.
        const fresh = new Reader();
        yield* readOn(sessionId, fresh, 100);
        readers.push(fresh);
        yield* readOn(sessionId, oneByOne, 1);
        // Of two changes that were sent, one arrived.
        const sent = yield* changedAfter(sessionId, lagging.seq, 2);
        lagging.apply(sent?.changes.slice(0, 1) ?? []);
      }
      const once = new Reader();
      yield* readOn(sessionId, once, 1_000);
      for (const [index, reader] of [oneByOne, lagging, ...readers].entries()) {
        yield* readOn(sessionId, reader, 1 + (index % 5));
        expect(reader).toEqual(once);
      }
      const snapshot = yield* (yield* Conversations).page(sessionId, everything);
      expect([...once.items.values()].toSorted((a, b) => b.place - a.place)).toEqual(snapshot?.items);
      expect(once.state).toEqual({
        turn: snapshot?.conversation.turn,
        usage: snapshot?.conversation.usage,
        held: snapshot?.conversation.held,
      });
      expect(once.seq).toBe(snapshot?.conversation.seq);
    }),
  );

  check(
    "is the same for a reader that pages back while the agent works and follows from its first page",
    Effect.gen(function* () {
      const { note, page } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const reports = reportsOf(sandboxId, 24);
      for (const step of reports.slice(0, 12)) yield* note(sessionId, step);
      const reader = new Reader();
      const first = yield* page(sessionId, { before: null, limit: 3 });
      reader.addPage(first?.items ?? []);
      reader.seq = first?.conversation.seq ?? 0;
      let [before, pages] = [first?.nextCursor ?? null, 1];
      for (const [index, step] of reports.slice(12).entries()) {
        // The prompt is accepted while the reader is on its way to it, and moves to the end.
        const prompt = nativeItem("m1", step.rev, { role: "user", message_id: sessionId });
        yield* note(sessionId, index === 1 ? { ...step, items: [...step.items, prompt] } : step);
        if (before === null) continue;
        const older = yield* page(sessionId, { before, limit: 3 });
        expect(older?.items.every(({ place }) => place < Number(before))).toBe(true);
        reader.addPage(older?.items ?? []);
        [before, pages] = [older?.nextCursor ?? null, pages + 1];
      }
      expect([before, pages]).toEqual([null, 5]);
      yield* readOn(sessionId, reader, 4);
      const all = yield* page(sessionId, everything);
      expect([...reader.items.values()].toSorted((a, b) => b.place - a.place)).toEqual(all?.items);
    }),
  );

  check(
    "tells a reader that is too far behind, or ahead, to start again, and refuses a foreign cursor [T07]",
    Effect.gen(function* () {
      const { note, page, changedAfter } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const many = Array.from({ length: CHANGES_BEHIND_MAX }, (_, index) => nativeItem(`i${index}`, index));
      yield* note(sessionId, report(sandboxId, CHANGES_BEHIND_MAX, { items: many }));
      const last = CHANGES_BEHIND_MAX + 1;
      expect(yield* changedAfter(sessionId, 0, 2)).toEqual({ changes: [], seq: last, reset: true });
      expect(yield* changedAfter(sessionId, 1, 2)).toMatchObject({ seq: 3, reset: false });
      expect(yield* changedAfter(sessionId, last, 2)).toEqual({ changes: [], seq: last, reset: false });
      expect(yield* changedAfter(sessionId, last + 1, 2)).toEqual({ changes: [], seq: last, reset: true });
      for (const before of ["", "0", "-1", "1e3", "x", "9999999999", "1\n", "2 OR 1=1"]) {
        const error = yield* Effect.flip(page(sessionId, { before, limit: 2 }));
        expect(error._tag).toBe("BadCursor");
      }
    }),
  );

  check(
    "counts its versions without gaps and without duplicates under concurrent writers",
    Effect.gen(function* () {
      const { note, close, keepOutput, page } = yield* Conversations;
      const { sessionId, sandboxId: former } = yield* converse(yield* makeWorld(5));
      const open = { status: "running", completed_at: null } as const;
      const left = Array.from({ length: 5 }, (_, index) => nativeItem(`left${index}`, index, open));
      const before = yield* note(sessionId, report(former, 9, { items: left }));
      const sandboxId = yield* replaceSandbox(sessionId, former);
      let rev = 0;
      const writer = (name: string) =>
        Effect.forEach(Array.from({ length: 15 }).keys(), (index) => {
          rev += 1;
          const items = [
            nativeItem(`${name}${index}`, rev),
            nativeItem("shared", rev, open),
            nativeTool("tool", rev, name),
          ];
          const turn = { state: index % 2 === 0 ? "running" : "idle", waiting_for: null } as const;
          return note(sessionId, report(sandboxId, rev, { items, turn }));
        });
      const others = Effect.gen(function* () {
        const tool = (yield* page(sessionId, everything))?.items.find(({ nativeId }) => nativeId === "tool");
        if (tool !== undefined) yield* keepOutput(sessionId, { itemId: tool.id, sandboxId, text: "whole" });
        return [yield* close(sessionId, { sandboxId: former, as: "lost", now: NOON })];
      });
      const answers = yield* Effect.all([writer("a"), writer("b"), others, writer("c"), others], {
        concurrency: "unbounded",
      });
      const told = [before, ...answers.flat()].flatMap((answer) => answer?.changes ?? []);
      const snapshot = yield* page(sessionId, everything);
      const last = snapshot?.conversation.seq ?? 0;
      // Number 1 is the prompt's.
      expect(told.map(({ seq }) => seq).toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: last - 1 }, (_, index) => index + 2),
      );
      expect(snapshot?.items.filter(({ status }) => status === "lost")).toHaveLength(5);
      const reader = new Reader();
      reader.apply(told.toSorted((a, b) => a.seq - b.seq));
      for (const item of snapshot?.items ?? [])
        if (item.id !== sessionId) expect(reader.items.get(item.id)).toEqual(item);
      expect(reader.state?.turn).toEqual(snapshot?.conversation.turn);
    }),
  );
};

const MIB = 1024 * 1024;
const attachmentOf = (bytes: number) => {
  const content = Buffer.alloc(bytes, "x");
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { id: randomUUID(), name: "log ü.txt", mediaType: "text/plain", sha256, content };
};

/** An item of a megabyte. */
const large = (index: number) =>
  nativeItem(`large${index}`, 100 + index, {
    content: [{ type: "text", text: "y".repeat(1_000_000) }],
  });

const checkKept = (check: Check): void => {
  check(
    "keeps whole outputs and attachments, and removes them with the session",
    Effect.gen(function* () {
      const { note, get, item, keepOutput, output, keepAttachment, attachment } = yield* Conversations;
      const world = yield* makeWorld(5);
      const { sessionId, sandboxId } = yield* converse(world);
      const noted = yield* note(sessionId, report(sandboxId, 1, { items: [nativeTool("t", 1, "begin")] }));
      const [change] = noted?.changes ?? [];
      const itemId = change?.type === "item" ? change.item.id : "";
      expect(yield* item(sessionId, itemId)).toEqual(change?.type === "item" ? change.item : null);
      expect([yield* item(sessionId, randomUUID()), yield* item(randomUUID(), itemId)]).toEqual([null, null]);
      const before = noted?.conversation.bytes ?? 0;
      expect(yield* keepOutput(sessionId, { itemId, sandboxId, text: "a\0b\ud800" })).toBe(true);
      expect(yield* output(sessionId, itemId)).toBe("ab\ufffd");
      expect(yield* keepOutput(sessionId, { itemId, sandboxId, text: "ü".repeat(MIB) })).toBe(true);
      expect(yield* output(sessionId, itemId)).toBe("ü".repeat(MIB / 2));
      expect((yield* get(sessionId))?.bytes).toBe(before + MIB);
      const foreign = { itemId, sandboxId: randomUUID(), text: "x" };
      expect(yield* keepOutput(sessionId, foreign)).toBe(false);
      expect(yield* keepOutput(sessionId, { ...foreign, itemId: randomUUID() })).toBe(false);
      expect(yield* keepOutput(randomUUID(), foreign)).toBe(false);
      const file = attachmentOf(1000);
      expect(yield* keepAttachment(sessionId, { ...file, now: NOON })).toBe("kept");
      expect(yield* keepAttachment(sessionId, { ...attachmentOf(9), id: file.id, now: NOON })).toBe("kept");
      expect(yield* attachment(sessionId, file.id)).toEqual(file);
      expect((yield* get(sessionId))?.bytes).toBe(before + MIB + 1000);
      expect(yield* keepAttachment(randomUUID(), { ...file, now: NOON })).toBe(null);
      const other = yield* converse(world);
      expect([yield* output(other.sessionId, itemId), yield* attachment(other.sessionId, file.id)]).toEqual([
        null,
        null,
      ]);
      yield* tellSession(sessionId, { type: "delete.requested" });
      expect([yield* output(sessionId, itemId), yield* attachment(sessionId, file.id)]).toEqual([null, null]);
      expect(yield* note(sessionId, report(sandboxId, 2))).toBe(null);
    }),
  );

  check(
    "makes room when it is full: by its oldest outputs, then by the content of its oldest items [D08]",
    Effect.gen(function* () {
      const { note, get, page, keepOutput, output, keepAttachment, changedAfter } = yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const tools = Array.from({ length: 14 }, (_, index) => nativeTool(`t${index}`, index, "begin"));
      yield* note(sessionId, report(sandboxId, 20, { items: tools }));
      const ids = ((yield* page(sessionId, everything))?.items ?? [])
        .filter(({ kind }) => kind === "tool")
        .map(({ id }) => id)
        .toReversed();
      const keep = (itemId: string) => keepOutput(sessionId, { itemId, sandboxId, text: "x".repeat(MIB) });
      const attach = () => keepAttachment(sessionId, { ...attachmentOf(ATTACHMENT_MAX), now: NOON });
      const keptOutputs = Effect.map(
        Effect.forEach(ids, (id) => output(sessionId, id)),
        (texts) => texts.map((text) => text !== null),
      );
      for (const id of ids.slice(0, 13)) expect(yield* keep(id)).toBe(true);
      for (const _ of [1, 2, 3, 4, 5]) expect(yield* attach()).toBe("kept");
      const full = yield* get(sessionId);
      expect(yield* keep(ids[13] ?? "")).toBe(true);
      const after = yield* get(sessionId);
      expect(after?.bytes).toBeLessThanOrEqual(CONVERSATION_TRIM_TO);
      const gone = 9;
      expect(yield* keptOutputs).toEqual(ids.map((_, index) => index >= gone));
      const told = yield* changedAfter(sessionId, full?.seq ?? 0, 100);
      expect(told?.changes.map((change) => change.type === "item" && change.item)).toMatchObject(
        ids.slice(0, gone).map((id, index) => ({ id, pruned: true, seq: (full?.seq ?? 0) + index + 1 })),
      );
      expect(yield* keep(ids[0] ?? "")).toBe(false);

      // An attachment may take the place of every output, and of nothing else.
      expect(yield* attach()).toBe("kept");
      expect(yield* keptOutputs).toEqual(ids.map(() => false));
      const settled = yield* get(sessionId);
      expect(yield* attach()).toBe("full");
      expect(yield* get(sessionId)).toEqual(settled);

      for (const index of [0, 1, 2, 3, 4])
        yield* note(sessionId, report(sandboxId, 100 + index, { items: [large(index)] }));
      const [newest, ...older] = (yield* page(sessionId, { before: null, limit: 5 }))?.items ?? [];
      expect(newest).toMatchObject({ nativeId: "large4", pruned: false });
      expect(older.map(({ pruned, content }) => [pruned, content])).toEqual(older.map(() => [true, []]));
      expect((yield* get(sessionId))?.bytes).toBeLessThanOrEqual(CONVERSATION_KEPT_MAX);
      const first = (yield* page(sessionId, everything))?.items.at(-1);
      expect(first).toMatchObject({ id: sessionId, pruned: false, content: [{ text: "Say hello." }] });
    }),
  );
};

const fileOf = (attachment_id: string) =>
  ({ type: "file", name: "a", media_type: "text/plain", attachment_id }) as const;

const checkUnused = (check: Check): void => {
  check(
    "removes an attachment that no message has after some hours, and keeps that of a message",
    Effect.gen(function* () {
      const { note, get, keepAttachment, attachment, attachmentHeads, pruneAttachments } =
        yield* Conversations;
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const [used, unused, later] = [attachmentOf(10), attachmentOf(200), attachmentOf(3000)];
      for (const file of [used, unused]) yield* keepAttachment(sessionId, { ...file, now: NOON });
      yield* keepAttachment(sessionId, { ...later, now: NOON + 1 });
      // Only messages of people have attachments. A sandbox may name anything.
      const said = { role: "user", content: [fileOf(used.id), fileOf("no id")] } as const;
      const items = [nativeItem("m", 1, said), nativeItem("a", 2, { content: [fileOf(unused.id)] })];
      const noted = yield* note(sessionId, report(sandboxId, 2, { items }));
      expect(noted?.changes).toHaveLength(2);
      const named = [later.id, randomUUID(), unused.id, used.id];
      const heads = Effect.map(attachmentHeads(sessionId, named), (all) => all.map(({ id }) => id));
      const pruneAll = Effect.fnUntraced(function* (now: number) {
        while ((yield* pruneAttachments(now)) > 0);
      });
      yield* pruneAll(NOON + ATTACHMENT_UNUSED_MS - 1);
      expect(yield* heads).toEqual([later.id, unused.id, used.id]);
      const before = (yield* get(sessionId))?.bytes ?? 0;
      expect(yield* pruneAttachments(NOON + ATTACHMENT_UNUSED_MS)).toBeGreaterThan(0);
      yield* pruneAll(NOON + ATTACHMENT_UNUSED_MS);
      expect(yield* heads).toEqual([later.id, used.id]);
      expect((yield* get(sessionId))?.bytes).toBe(before - 200);
      expect(yield* attachment(sessionId, unused.id)).toBe(null);
      yield* pruneAll(NOON + 1000 * ATTACHMENT_UNUSED_MS);
      const { content, mediaType, ...head } = used;
      const known = { ...head, media_type: mediaType, bytes: content.length };
      expect(yield* attachmentHeads(sessionId, named)).toEqual([known]);
    }),
  );
};

export const checkConversationReaders = (check: Check): void => {
  describe("a conversation", () => {
    checkReaders(check);
    checkKept(check);
    checkUnused(check);
  });
};
