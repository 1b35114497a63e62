/** The tails that readers of events and of conversations share (src/http/live/tail.ts), over the twin of the store. */
import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Stream from "effect/Stream";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { conversationStream, conversationTails } from "../../../src/http/live/conversation.ts";
import { eventStream, eventTails } from "../../../src/http/live/events.ts";
import { conversationHubLayer, ConversationHub } from "../../../src/services/sessions/conversation-hub.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { Events } from "../../../src/store/ports/events.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";
import { admitSession } from "../../support/world/sessions.ts";
import { converse, itemsOf, nativeItem, report } from "../../support/world/conversations.ts";
import { makeWorld } from "../../support/world/world.ts";

const READERS = 200;
const decoder = new TextDecoder();

/** How often the store was read by readers and tails, and whether it fails. */
interface Reads {
  count: number;
  isGone: boolean;
}

const counted = (reads: Reads) => {
  const read = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.suspend((): Effect.Effect<A, E | StoreError> => {
      reads.count += 1;
      return reads.isGone
        ? Effect.fail(new StoreError({ operation: "read", cause: new Error("gone") }))
        : effect;
    });
  const wrapped = Layer.effectContext(
    Effect.gen(function* () {
      const [conversations, events] = [yield* Conversations, yield* Events];
      return Layer.empty.pipe(
        Layer.merge(
          Layer.succeed(Conversations, {
            ...conversations,
            changedAfter: (...given) => read(conversations.changedAfter(...given)),
          }),
        ),
        Layer.merge(Layer.succeed(Events, { ...events, after: (request) => read(events.after(request)) })),
        Layer.build,
      );
    }).pipe(Effect.flatten),
  );
  return Layer.provideMerge(wrapped, Layer.merge(memoryStore, conversationHubLayer));
};

/** Takes everything that a stream gives into a list. */
const collected = Effect.fnUntraced(function* <E, R>(stream: Stream.Stream<Uint8Array, E, R>) {
  const got: string[] = [];
  yield* Effect.forkScoped(
    Stream.runForEach(stream, (frame) => Effect.sync(() => void got.push(decoder.decode(frame)))),
  );
  return got;
});

/** Lets every fiber run until it waits. */
const settle = Effect.repeat(TestClock.adjust("1 millis"), { times: 50 });
const pass = (time: Duration.Input) => Effect.andThen(TestClock.adjust(time), settle);
const isComment = (frame: string): boolean => frame.startsWith(":");

describe("two hundred readers at rest", () => {
  it.effect("of one conversation cost one read at each commit, and one every 15 s [D11]", () => {
    const reads: Reads = { count: 0, isGone: false };
    return Effect.gen(function* () {
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const tails = yield* conversationTails;
      const readers = yield* Effect.forEach(Array.from({ length: READERS }), () =>
        Effect.flatMap(conversationStream(tails, sessionId, null), collected),
      );
      yield* settle;
      const { count } = reads;
      expect(count).toBeLessThanOrEqual(READERS + 1);
      yield* pass("14 seconds");
      expect(reads.count - count).toBe(0);
      yield* pass("1 seconds");
      expect(reads.count - count).toBe(1);
      const { note } = yield* Conversations;
      yield* note(sessionId, report(sandboxId, 1, { items: [nativeItem("a", 1)] }));
      yield* settle;
      expect(reads.count - count).toBe(2);
      for (const got of readers)
        expect(got.map((frame) => /^(?:: keep|.*\n?event: \w+)/m.exec(frame)?.[0])).toEqual([
          expect.stringContaining("open"),
          ": keep",
          expect.stringContaining("item"),
        ]);
    }).pipe(Effect.scoped, Effect.provide(counted(reads)));
  });

  it.effect("of one project's events cost one read at each commit, and one every 15 s [D11]", () => {
    const reads: Reads = { count: 0, isGone: false };
    return Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const tails = yield* eventTails;
      const scope = { projectId: world.projectId, sessionId: null };
      const readers = yield* Effect.forEach(Array.from({ length: READERS }), () =>
        Effect.flatMap(eventStream(tails, scope, null), collected),
      );
      yield* settle;
      const { count } = reads;
      yield* pass("14 seconds");
      expect(reads.count - count).toBe(0);
      yield* pass("1 seconds");
      expect(reads.count - count).toBe(1);
      yield* admitSession(world);
      yield* settle;
      expect(reads.count - count).toBe(2);
      for (const got of readers) {
        expect(got.filter((frame) => !isComment(frame))).toHaveLength(2);
        expect(got.at(-1)).toContain("event: session.status");
      }
    }).pipe(Effect.scoped, Effect.provide(counted(reads)));
  });
});

describe("a reader", () => {
  it.effect("that takes nothing for long reads the rest from the store, without a gap", () => {
    const reads: Reads = { count: 0, isGone: false };
    return Effect.gen(function* () {
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const tails = yield* conversationTails;
      const { note } = yield* Conversations;
      const goesOn = yield* Deferred.make<void>();
      const ids: number[] = [];
      const slow = yield* conversationStream(tails, sessionId, null);
      const took = Stream.runForEach(slow, (frame) =>
        Effect.gen(function* () {
          const id = /^id: (\d+)$/m.exec(decoder.decode(frame))?.[1];
          if (id !== undefined) ids.push(Number(id));
          if (ids.length === 1) yield* Deferred.await(goesOn);
        }),
      );
      yield* Effect.forkScoped(took);
      const quick = yield* Effect.flatMap(conversationStream(tails, sessionId, null), collected);
      yield* settle;
      // Together more than a ring keeps.
      const text = "x".repeat(40_000);
      for (let rev = 1; rev <= 60; rev += 1) {
        const items = [nativeItem(`i${rev}`, rev, { content: [{ type: "text", text }] })];
        yield* note(sessionId, report(sandboxId, rev, { items }));
        yield* settle;
      }
      expect(quick).toHaveLength(61);
      yield* Deferred.succeed(goesOn, undefined);
      yield* settle;
      expect(ids).toEqual(Array.from({ length: 61 }, (_, index) => (ids[0] ?? 0) + index));
    }).pipe(Effect.scoped, Effect.provide(counted(reads)));
  });

  it.effect("stays while the database is away, and gets what was committed meanwhile", () => {
    const reads: Reads = { count: 0, isGone: false };
    return Effect.gen(function* () {
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const tails = yield* conversationTails;
      const got = yield* Effect.flatMap(conversationStream(tails, sessionId, null), collected);
      yield* settle;
      reads.isGone = true;
      const { note } = yield* Conversations;
      yield* note(sessionId, report(sandboxId, 1, { items: [nativeItem("a", 1)] }));
      yield* pass("10 seconds");
      expect(got).toHaveLength(1);
      reads.isGone = false;
      yield* pass("1 seconds");
      expect(got.at(-1)).toContain("text of a at 1");
    }).pipe(Effect.scoped, Effect.provide(counted(reads)));
  });

  it.effect("gets its events at once if an earlier one came while the database was away", () => {
    const reads: Reads = { count: 0, isGone: true };
    return Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const tails = yield* eventTails;
      const scope = { projectId: world.projectId, sessionId: null };
      expect((yield* Effect.flip(eventStream(tails, scope, null)))._tag).toBe("StoreError");
      reads.isGone = false;
      const got = yield* Effect.flatMap(eventStream(tails, scope, null), collected);
      yield* admitSession(world);
      yield* settle;
      expect(got.at(-1)).toContain("event: session.status");
    }).pipe(Effect.scoped, Effect.provide(counted(reads)));
  });

  it.effect("of text that grows gets it without a read of the store", () => {
    const reads: Reads = { count: 0, isGone: false };
    return Effect.gen(function* () {
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const tails = yield* conversationTails;
      const got = yield* Effect.flatMap(conversationStream(tails, sessionId, null), collected);
      const { note } = yield* Conversations;
      const open = nativeItem("a", 1, { status: "running", completed_at: null });
      const changed = yield* note(sessionId, report(sandboxId, 1, { items: [open] }));
      yield* settle;
      const { count } = reads;
      const hub = yield* ConversationHub;
      const [item] = itemsOf(changed);
      const seq = changed?.conversation.seq ?? 0;
      for (let offset = 0; offset < 20; offset += 2)
        hub.publish(sessionId, [{ itemId: item?.id ?? "", offset, text: `${offset % 10} `, seq }]);
      yield* settle;
      expect(
        got
          .slice(2)
          .join("")
          .match(/event: delta/g),
      ).toHaveLength(10);
      expect(reads.count).toBe(count);
    }).pipe(Effect.scoped, Effect.provide(counted(reads)));
  });

  it.effect("of text that grows does not wait for a version that is committed and not read yet", () => {
    const reads: Reads = { count: 0, isGone: false };
    return Effect.gen(function* () {
      const { sessionId, sandboxId } = yield* converse(yield* makeWorld(5));
      const tails = yield* conversationTails;
      const got = yield* Effect.flatMap(conversationStream(tails, sessionId, null), collected);
      const { note } = yield* Conversations;
      const growing = (rev: number, text: string) =>
        report(sandboxId, rev, {
          items: [
            nativeItem("a", rev, {
              status: "running",
              completed_at: null,
              content: [{ type: "text", text }],
            }),
          ],
        });
      const first = yield* note(sessionId, growing(1, "one "));
      yield* settle;
      const [base, itemId] = [first?.conversation.seq ?? 0, itemsOf(first)[0]?.id ?? ""];
      const hub = yield* ConversationHub;
      const says = (offset: number, text: string, seq: number) =>
        hub.publish(sessionId, [{ itemId, offset, text, seq }]);
      says(4, "two ", base);
      reads.isGone = true;
      const second = yield* note(sessionId, growing(2, "one "));
      // As the follower does (growing-text.ts): again after the version, and on from what readers have.
      says(4, "two ", second?.conversation.seq ?? 0);
      says(8, "three ", base);
      yield* settle;
      const texts = () => got.slice(2).flatMap((frame) => /"text":"([^"]*)"/g.exec(frame)?.[1] ?? []);
      expect(texts()).toEqual(["two ", "three "]);
      reads.isGone = false;
      yield* pass("1 seconds");
      expect(got.slice(4).map((frame) => /^event: (\w+)/m.exec(frame)?.[1])).toEqual(["item", "delta"]);
      expect(texts().at(-1)).toBe("two three ");
    }).pipe(Effect.scoped, Effect.provide(counted(reads)));
  });
});
