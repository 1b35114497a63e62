/** A conversation's actor: what people say reaches the agent once, whatever ends in between. */
import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import type { ConversationReport } from "../../../src/domain/conversation/conversation.ts";
import type {
  MessageHandedOver,
  OutgoingMessage,
  RequestAnswer,
} from "../../../src/domain/conversation/steering.ts";
import { DaemonUnreachable } from "../../../src/sandbox/daemon.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { Suspensions } from "../../../src/store/ports/connectors/suspensions.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { openActorsWorld, REQUEST_TTL_MS, until } from "../../support/world/actors.ts";
import { unsteered } from "../../support/service/sessions/scripted-steering.ts";
import { nativeItem } from "../../support/world/conversations.ts";
import { NOON } from "../../support/world/world.ts";

const author = { kind: "user", userId: "u", name: "Ada", triggerSlug: null, fireId: null } as const;
const posted = (messageId: string) =>
  ({
    type: "message.posted",
    messageId,
    isUrgent: false,
    message: { author, text: `text of ${messageId}`, files: [], model: null, agent: null },
  }) as const;
const ONE = "0190f3b2-0000-7000-8000-00000000000a";
const TWO = "0190f3b2-0000-7000-8000-00000000000b";
const idle = (ended: number): ConversationReport => ({
  type: "turn",
  turn: { state: "idle", waiting_for: null },
  ended,
  rev: ended + 1,
});
const MINUTE_MS = 60_000;
const away = Effect.fail(new DaemonUnreachable({ message: "the daemon does not answer" }));
const accepted = (turn: number): MessageHandedOver => ({ outcome: "accepted", turn });

/** A running session. Its daemon gives these answers to messages, one after the other, and then accepts each. */
const conversing = (
  answers: readonly Effect.Effect<MessageHandedOver, DaemonUnreachable>[],
  reports: Stream.Stream<ConversationReport> = Stream.make(idle(0)),
) =>
  Effect.gen(function* () {
    const world = yield* openActorsWorld();
    const handed: OutgoingMessage[] = [];
    const answered: RequestAnswer[] = [];
    world.script.conversation = () => Stream.concat(reports, Stream.never);
    world.script.steering = {
      ...unsteered,
      hand: (_link, _context, message) =>
        Effect.suspend(() => {
          handed.push(message);
          return answers[handed.length - 1] ?? Effect.succeed(accepted(handed.length));
        }),
      answer: (_link, _context, { answer }) =>
        Effect.as(
          Effect.sync(() => answered.push(answer)),
          true,
        ),
    };
    const conversations = yield* Conversations.pipe(world.inPorts);
    const life = yield* world.begin;
    const id = yield* world.admit;
    yield* life.actors.wake("session", id);
    yield* world.untilSession(id, "running");
    yield* until(Effect.map(conversations.get(id), (found) => found !== null));
    const status = Effect.map(conversations.item(id, ONE), (item) => item?.status);
    const untilStatus = (wanted: string) => until(Effect.map(status, (now) => now === wanted));
    return { ...world, ...life, id, handed, answered, conversations, untilStatus };
  });

describe("a message", () => {
  it.effect("is handed over again, as the same one, until the daemon answers [D01]", () =>
    Effect.gen(function* () {
      const { actors, id, handed, untilStatus } = yield* conversing([away, away]);
      yield* actors.conversation(id, posted(ONE));
      yield* untilStatus("accepted");
      expect(handed).toHaveLength(3);
      expect(new Set(handed.map((message) => JSON.stringify(message))).size).toBe(1);
    }),
  );

  it.effect("is handed over by the next life if the service ends in between [D01]", () =>
    Effect.gen(function* () {
      const { actors, id, handed, begin, end, untilStatus } = yield* conversing([Effect.never]);
      yield* actors.conversation(id, posted(ONE));
      yield* until(Effect.sync(() => handed.length === 1));
      yield* end;
      yield* begin;
      yield* untilStatus("accepted");
      expect(new Set(handed.map((message) => JSON.stringify(message))).size).toBe(1);
    }),
  );

  it.effect("on its way to a sandbox that ends waits for the next sandbox", () =>
    Effect.gen(function* () {
      const { actors, id, handed, untilStatus, untilSession } = yield* conversing([Effect.never]);
      yield* actors.conversation(id, posted(ONE));
      yield* until(Effect.sync(() => handed.length === 1));
      yield* actors.session(id, { type: "stop.requested" });
      yield* untilSession(id, "stopped");
      yield* untilStatus("queued");
      yield* actors.session(id, {
        type: "restart.requested",
        sandboxId: "0190f3b2-0000-7000-8000-0000000000bb",
      });
      yield* untilStatus("accepted");
      expect(handed.map((message) => message.id)).toEqual([ONE, ONE]);
    }),
  );

  it.effect("in the moments after its sandbox was killed waits, and the next sandbox gets it, once", () =>
    Effect.gen(function* () {
      const world = yield* conversing([away, away]);
      const {
        actors,
        id,
        handed,
        untilStatus,
        untilSession,
        sandboxes,
        newestSandbox,
        session,
        conversations,
      } = world;
      const killed = (yield* newestSandbox(id))?.id ?? "";
      // The service does not know yet. The daemon does not answer any more.
      yield* actors.conversation(id, posted(ONE));
      yield* until(Effect.sync(() => handed.length > 0));
      yield* sandboxes.end(killed, { code: "exited", message: "its PID 1 ended with SIGKILL" });
      yield* actors.conversation(id, posted(TWO));
      yield* untilSession(id, "failed");
      expect((yield* session(id))?.failure).toMatchObject({ code: "sandbox_lost" });
      yield* untilStatus("queued");
      yield* actors.session(id, {
        type: "restart.requested",
        sandboxId: "0190f3b2-0000-7000-8000-0000000000bb",
      });
      yield* untilStatus("accepted");
      // The second one waits for the end of the turn that the first one began.
      expect(new Set(handed.map((message) => message.id))).toEqual(new Set([ONE]));
      expect((yield* conversations.item(id, TWO))?.status).toBe("queued");
    }),
  );
});

describe("own credentials of the session's person", () => {
  it.effect.each([
    ["stay when her own message goes out", "owner", null],
    ["are suspended before another person's message goes out [K20]", "u", "u"],
  ] as const)("%s", ([, sender, by]) =>
    Effect.gen(function* () {
      const suspended: (string | null)[] = [];
      const { actors, id, inPorts, script, world, untilStatus } = yield* conversing([]);
      const suspensions = yield* Suspensions.pipe(inPorts);
      script.steering = {
        ...unsteered,
        hand: () =>
          Effect.gen(function* () {
            suspended.push((yield* Effect.orDie(suspensions.get(id)))?.by.id ?? null);
            return accepted(1);
          }),
      };
      const { message, ...rest } = posted(ONE);
      const userId = sender === "owner" ? world.userId : sender;
      yield* actors.conversation(id, { ...rest, message: { ...message, author: { ...author, userId } } });
      yield* untilStatus("accepted");
      expect(suspended).toEqual([by]);
    }),
  );
});

describe("a message that the agent of a lost sandbox had", () => {
  const item = nativeItem("said", 2, { kind: "message", role: "user", message_id: ONE });

  it.effect("is not handed to the next sandbox, and what follows it is", () =>
    Effect.gen(function* () {
      const isTaken = yield* Deferred.make<void>();
      const taken = Stream.unwrap(
        Effect.as(Deferred.await(isTaken), Stream.make({ type: "item", item } as const)),
      );
      let sandboxes = 0;
      const reports = Stream.suspend(() =>
        Stream.concat(Stream.make(idle(0)), (sandboxes += 1) === 1 ? taken : Stream.empty),
      );
      const answerLost = Effect.andThen(Deferred.succeed(isTaken, undefined), Effect.never);
      const world = yield* conversing([answerLost], reports);
      const { actors, id, handed, untilStatus, untilSession } = world;
      yield* actors.conversation(id, posted(ONE));
      yield* untilStatus("accepted");
      yield* actors.session(id, { type: "stop.requested" });
      yield* untilSession(id, "stopped");
      yield* actors.conversation(id, posted(TWO));
      yield* actors.session(id, {
        type: "restart.requested",
        sandboxId: "0190f3b2-0000-7000-8000-0000000000bb",
      });
      yield* until(Effect.sync(() => handed.length === 2));
      expect(handed.map((message) => message.id)).toEqual([ONE, TWO]);
    }),
  );
});

describe("a request", () => {
  const request = nativeItem("ask", 1, {
    kind: "request",
    status: "running",
    completed_at: null,
    request: { kind: "question", title: "", patterns: [], questions: [] },
  });
  const asking: readonly ConversationReport[] = [
    { type: "item", item: request },
    { type: "turn", turn: { state: "requires_action", waiting_for: "ask" }, ended: 0, rev: 2 },
  ];

  it.effect("is declined when its time is over, and not before", () =>
    Effect.gen(function* () {
      const { answered, conversations, id } = yield* conversing([], Stream.fromIterable(asking));
      const open = Effect.map(
        conversations.page(id, { before: null, limit: 5 }),
        (page) => page?.requests[0] ?? null,
      );
      yield* until(Effect.map(open, (item) => item !== null));
      yield* TestClock.adjust(REQUEST_TTL_MS - MINUTE_MS);
      expect(answered).toEqual([]);
      yield* TestClock.adjust(2 * MINUTE_MS);
      yield* until(Effect.sync(() => answered.length > 0));
      expect(answered).toEqual([{ declined: "expired" }]);
      expect((yield* open)?.answer).toMatchObject({ by: null, answer: { declined: "expired" } });
    }),
  );

  it.effect("is declined although the actor hears of it when its time is over already", () =>
    Effect.gen(function* () {
      const heard = yield* Deferred.make<void>();
      const [item, turn] = [Stream.fromIterable(asking.slice(0, 1)), Stream.fromIterable(asking.slice(1))];
      const later = Stream.unwrap(Effect.as(Deferred.await(heard), turn));
      const { answered, conversations, id } = yield* conversing([], Stream.concat(item, later));
      const page = conversations.page(id, { before: null, limit: 5 });
      yield* until(Effect.map(page, (known) => known?.requests.length === 1));
      yield* TestClock.adjust(REQUEST_TTL_MS + MINUTE_MS);
      expect(answered).toEqual([]);
      yield* Deferred.succeed(heard, undefined);
      yield* until(
        Effect.map(conversations.memory.load(id), (loaded) => loaded?.snapshot.state === "requires_action"),
      );
      yield* TestClock.adjust(MINUTE_MS);
      yield* until(Effect.sync(() => answered.length > 0));
      expect(answered).toEqual([{ declined: "expired" }]);
    }),
  );

  it.effect("is known and declined in time if the answer to the write of its report was lost", () =>
    Effect.gen(function* () {
      const written = yield* Deferred.make<void>();
      const later = Stream.unwrap(Effect.as(Deferred.await(written), Stream.fromIterable(asking)));
      const { answered, conversations, id, inPorts } = yield* conversing([], later);
      const { sandboxId } = (yield* (yield* Sessions.pipe(inPorts)).get(id)) ?? {};
      const turn = { state: "requires_action", waiting_for: "ask" } as const;
      yield* conversations.note(id, {
        sandboxId: sandboxId ?? "",
        items: [request],
        turn,
        rev: 2,
        now: NOON,
      });
      yield* Deferred.succeed(written, undefined);
      yield* until(
        Effect.map(conversations.memory.load(id), (loaded) => loaded?.snapshot.state === "requires_action"),
      );
      yield* TestClock.adjust(REQUEST_TTL_MS + MINUTE_MS);
      yield* until(Effect.sync(() => answered.length > 0));
      expect(answered).toEqual([{ declined: "expired" }]);
    }),
  );
});
