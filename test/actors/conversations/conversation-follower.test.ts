import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Stream from "effect/Stream";
import { describe, expect } from "vitest";
import type { ConversationReport, NativeItem } from "../../../src/domain/conversation/conversation.ts";
import { DaemonUnreachable } from "../../../src/sandbox/daemon.ts";
import { ConversationHub, type ItemDelta } from "../../../src/services/sessions/conversation-hub.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { openActorsWorld, until } from "../../support/world/actors.ts";
import { nativeItem, nativeTool } from "../../support/world/conversations.ts";

const item = (one: NativeItem): ConversationReport => ({ type: "item", item: one });
const turn = (state: "idle" | "running", rev: number): ConversationReport => ({
  type: "turn",
  turn: { state, waiting_for: null },
  ended: 0,
  rev,
});
const titled = (title: string, rev: number): ConversationReport => ({
  type: "turn",
  turn: { state: "idle", waiting_for: null, title },
  ended: 0,
  rev,
});
const delta = (native_id: string, offset: number, text: string): ConversationReport => ({
  type: "delta",
  delta: { native_id, offset, text },
});
const growing = (rev: number, text: string) =>
  nativeItem("answer", rev, { status: "running", completed_at: null, content: [{ type: "text", text }] });
const broken = Stream.fail(new DaemonUnreachable({ message: "the daemon closed the connection" }));

/** A running session whose daemon reports these lines, one portion for each time that it is asked. */
const following = (...portions: readonly Stream.Stream<ConversationReport, DaemonUnreachable>[]) =>
  followingOver((store) => store, ...portions);

const followingOver = (
  talks: (store: Conversations["Service"]) => Conversations["Service"],
  ...portions: readonly Stream.Stream<ConversationReport, DaemonUnreachable>[]
) =>
  Effect.gen(function* () {
    const world = yield* openActorsWorld({ talks });
    const asked: number[] = [];
    world.script.conversation = (after) => {
      asked.push(after);
      return portions[asked.length - 1] ?? Stream.never;
    };
    const outputs: string[] = [];
    world.script.output = (call) =>
      Effect.suspend(() =>
        outputs.push(call) === 1
          ? new DaemonUnreachable({ message: "lost" })
          : Effect.succeed(`the whole of ${call}`),
      );
    const hub = yield* ConversationHub.pipe(world.inPorts);
    const conversations = yield* Conversations.pipe(world.inPorts);
    const life = yield* world.begin;
    const id = yield* world.admit;
    const deltas: ItemDelta[] = [];
    const waiting = yield* hub.attach(id, () => deltas.push(...waiting.take(Infinity)));
    yield* life.actors.wake("session", id);
    yield* world.untilSession(id, "running");
    const page = Effect.map(
      conversations.page(id, { before: null, limit: 50 }),
      (found) => found?.items.toReversed() ?? [],
    );
    return { ...world, ...life, id, asked, deltas, outputs, page, conversations };
  });

const texts = (items: readonly { readonly content: readonly { readonly type: string }[] }[]) =>
  items.map(({ content }) => content.map((part) => ("text" in part ? part.text : "")).join(""));

describe("a running sandbox's conversation", () => {
  it.effect("is kept, with the state of the turn", () =>
    Effect.gen(function* () {
      const { page, conversations, id } = yield* following(
        Stream.fromIterable([item(nativeItem("one", 1)), item(growing(2, "Hel")), turn("running", 3)]).pipe(
          Stream.concat(Stream.never),
        ),
      );
      yield* until(Effect.map(page, (items) => items.some(({ nativeId }) => nativeId === "answer")));
      expect(texts(yield* page).slice(-2)).toEqual(["text of one at 1", "Hel"]);
      expect((yield* conversations.get(id))?.turn.state).toBe("running");
    }),
  );

  it.effect("is kept with the state of the turn that comes after its last version was written", () =>
    Effect.gen(function* () {
      const mayTurn = yield* Deferred.make<void>();
      const late = Effect.as(Deferred.await(mayTurn), turn("running", 1));
      const { page, conversations, id } = yield* following(
        Stream.make(item(growing(1, "Hel"))).pipe(
          Stream.concat(Stream.fromEffect(late)),
          Stream.concat(Stream.never),
        ),
      );
      yield* until(Effect.map(page, (items) => items.some(({ nativeId }) => nativeId === "answer")));
      yield* Deferred.succeed(mayTurn, undefined);
      yield* until(Effect.map(conversations.get(id), (found) => found?.turn.state === "running"));
    }),
  );

  it.effect(
    "names the session with the agent's own title and its later one, and leaves a person's name as it is",
    () =>
      Effect.gen(function* () {
        const mayGoOn = yield* Deferred.make<void>();
        const last = Stream.fromEffect(
          Effect.as(Deferred.await(mayGoOn), [titled("Greet everybody", 3), item(nativeItem("last", 4))]),
        );
        const { id, page, inPorts } = yield* following(
          Stream.make(titled("Greet", 1), titled("  Greet\nthe world\u0000 ", 2)).pipe(
            Stream.concat(Stream.flatMap(last, Stream.fromIterable)),
            Stream.concat(Stream.never),
          ),
        );
        const sessions = yield* Sessions.pipe(inPorts);
        const name = Effect.map(sessions.get(id), (session) => session?.name);
        yield* until(Effect.map(name, (known) => known === "Greet the world"));
        yield* sessions.rename(id, { name: "Mine", now: 1 });
        yield* Deferred.succeed(mayGoOn, undefined);
        yield* until(Effect.map(page, (items) => items.some(({ nativeId }) => nativeId === "last")));
        expect(yield* name).toBe("Mine");
      }),
  );

  it.effect("is asked for again from the last written version after the daemon's connection broke", () =>
    Effect.gen(function* () {
      const { page, asked } = yield* following(
        Stream.concat(Stream.fromIterable([item(growing(1, "Hel")), turn("running", 2)]), broken),
        broken,
        Stream.concat(
          Stream.fromIterable([
            item(nativeItem("answer", 3, { content: [{ type: "text", text: "Hello" }] })),
            turn("idle", 4),
          ]),
          Stream.never,
        ),
      );
      yield* until(Effect.map(page, (items) => texts(items).includes("Hello")));
      expect(asked).toEqual([0, 2, 2]);
    }),
  );

  it.effect("passes growing text on to its readers until the item is closed", () =>
    Effect.gen(function* () {
      const { page, deltas } = yield* following(
        Stream.make(item(growing(1, "Hel"))).pipe(
          Stream.concat(Stream.make(delta("answer", 3, "lo"))),
          Stream.concat(
            Stream.make(item(nativeItem("answer", 2, { content: [{ type: "text", text: "Hello" }] }))),
          ),
          Stream.concat(Stream.make(delta("answer", 5, " again"))),
          Stream.concat(Stream.never),
        ),
      );
      yield* until(Effect.map(page, (items) => texts(items).includes("Hello")));
      const answer = (yield* page).find(({ nativeId }) => nativeId === "answer");
      expect(deltas).toEqual([{ itemId: answer?.id, offset: 3, text: "lo", seq: 2 }]);
    }),
  );

  it.effect("passes growing text on while a version is being written, and again with that version", () =>
    Effect.gen(function* () {
      const [isWriting, mayWrite] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const slow = (store: Conversations["Service"]): Conversations["Service"] => ({
        ...store,
        note: (id, report) =>
          report.rev < 2
            ? store.note(id, report)
            : Deferred.succeed(isWriting, undefined).pipe(
                Effect.andThen(Deferred.await(mayWrite)),
                Effect.andThen(store.note(id, report)),
              ),
      });
      const { page, deltas } = yield* followingOver(
        slow,
        Stream.make(item(growing(1, "Hel"))).pipe(
          Stream.concat(Stream.make(delta("answer", 3, "lo"))),
          Stream.concat(Stream.make(item(growing(2, "Hello")), delta("answer", 5, " again"))),
          Stream.concat(Stream.never),
        ),
      );
      yield* Deferred.await(isWriting);
      yield* until(Effect.sync(() => deltas.length === 2));
      expect(deltas.map(({ offset, text, seq }) => [offset, text, seq])).toEqual([
        [3, "lo", 2],
        [5, " again", 2],
      ]);
      yield* Deferred.succeed(mayWrite, undefined);
      yield* until(Effect.map(page, (items) => texts(items).includes("Hello")));
      yield* until(Effect.sync(() => deltas.length === 3));
      expect(deltas.at(-1)).toMatchObject({ offset: 5, text: " again", seq: 3 });
    }),
  );

  it.effect("fetches the whole output of a tool that has ended with the beginning of it", () =>
    Effect.gen(function* () {
      const tool = nativeTool("call", 1, "begin");
      const whole = { ...tool, tool: tool.tool && { ...tool.tool, truncated: true } };
      const { page, conversations, id, outputs } = yield* following(
        Stream.concat(
          Stream.fromIterable([item(nativeTool("short", 2, "all")), item({ ...whole, rev: 3 })]),
          Stream.never,
        ),
      );
      yield* until(
        Effect.gen(function* () {
          const call = (yield* page).find(({ nativeId }) => nativeId === "call");
          return call !== undefined && (yield* conversations.output(id, call.id)) === "the whole of call";
        }),
      );
      // The first answer was lost.
      expect(outputs).toEqual(["call", "call"]);
    }),
  );

  it.effect("closes what a stopped sandbox left open", () =>
    Effect.gen(function* () {
      const { page, actors, id, untilSession } = yield* following(
        Stream.concat(Stream.fromIterable([item(growing(1, "Hel")), turn("running", 2)]), Stream.never),
      );
      yield* until(Effect.map(page, (items) => texts(items).includes("Hel")));
      const stopped = yield* Effect.forkChild(actors.session(id, { type: "stop.requested" }));
      yield* untilSession(id, "stopped");
      yield* Fiber.join(stopped);
      const left = (yield* page).find(({ nativeId }) => nativeId === "answer");
      expect(left?.status).toBe("interrupted");
    }),
  );

  it.effect(
    "says that a turn was interrupted whose sandbox was lost, and is silent if the sandbox rested",
    () =>
      Effect.gen(function* () {
        const lostAt = Effect.fnUntraced(function* (state: "idle" | "running") {
          const { conversations, id, sandboxes, newestSandbox, untilSession, session } = yield* following(
            Stream.concat(Stream.fromIterable([item(growing(1, "Hel")), turn(state, 2)]), Stream.never),
          );
          yield* until(Effect.map(conversations.get(id), (found) => found?.turn.state === state));
          const sandboxId = (yield* newestSandbox(id))?.id ?? "";
          yield* sandboxes.end(sandboxId, { code: "exited", message: "its PID 1 ended with SIGKILL" });
          yield* untilSession(id, "failed");
          return (yield* session(id))?.lastTurn ?? null;
        });
        expect(yield* lostAt("running")).toMatchObject({
          number: 1,
          state: "interrupted",
          error: { code: "sandbox_lost" },
        });
        expect(yield* lostAt("idle")).toBeNull();
      }),
  );

  it.effect("begins with the first report again in a session's next sandbox", () =>
    Effect.gen(function* () {
      const { asked, page, actors, id, untilSession } = yield* following(
        Stream.concat(Stream.fromIterable([item(nativeItem("one", 7)), turn("idle", 8)]), Stream.never),
        Stream.concat(Stream.fromIterable([item(nativeItem("two", 1)), turn("idle", 2)]), Stream.never),
      );
      yield* until(Effect.map(page, (items) => texts(items).includes("text of one at 7")));
      const stopped = yield* Effect.forkChild(actors.session(id, { type: "stop.requested" }));
      yield* untilSession(id, "stopped");
      yield* Fiber.join(stopped);
      const again = { type: "restart.requested", sandboxId: "0192d3a4-0000-7000-8000-0000000000bb" } as const;
      const restarted = yield* Effect.forkChild(actors.session(id, again));
      yield* untilSession(id, "running");
      yield* Fiber.join(restarted);
      yield* until(Effect.map(page, (items) => texts(items).includes("text of two at 1")));
      expect(asked).toEqual([0, 0]);
    }),
  );
});
