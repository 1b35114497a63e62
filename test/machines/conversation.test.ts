import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import { QUEUE_MAX } from "../../src/domain/conversation/steering.ts";
import { volatileMemory } from "../../src/actors/volatile.ts";
import {
  conversation,
  conversationMachine,
  type ConversationCommand,
  type ConversationSnapshot,
} from "../../src/machines/conversation.ts";
import type { ConversationEvent } from "../../src/machines/conversation-events.ts";
import { describeModel, everyStep, type Seen } from "./model.ts";

const report = {
  type: "runtime.reported",
  sandboxId: "one",
  seq: 0,
  ended: 0,
  isWorking: false,
  requests: [],
  plans: [],
  isAttended: true,
} as const;
const author = { kind: "user", userId: "u", name: "Ada", triggerSlug: null, fireId: null } as const;
const message = { author, text: "Go on.", files: [], model: null, agent: null };
const outcome = { messageId: "a", sandboxId: "one" } as const;

const events: ConversationEvent[] = [
  { type: "message.posted", messageId: "a", isUrgent: false, message },
  { type: "message.posted", messageId: "b", isUrgent: true, message },
  { type: "message.cancelled", messageId: "a" },
  { ...outcome, type: "message.accepted", turn: 1 },
  { ...outcome, type: "message.deferred", turn: 1 },
  { ...outcome, type: "message.refused", error: { code: "no", message: "It refuses." } },
  { type: "message.accepted", messageId: "b", sandboxId: "two", turn: 1 },
  { type: "queue.resumed" },
  { type: "interrupt.requested" },
  report,
  { ...report, isWorking: true },
  { ...report, requests: ["r"] },
  { ...report, ended: 1 },
  { ...report, ended: 1, isWorking: true },
  { ...report, sandboxId: "two" },
  { ...report, sandboxId: "two", requests: ["q"], isAttended: false },
  { type: "runtime.gone", sandboxId: "one" },
  { type: "answer.given", requestId: "r", answer: { choice: "once", message: null }, by: author },
];

type Step = Seen<ConversationSnapshot, ConversationEvent, ConversationCommand>;
const commanded = <Type extends ConversationCommand["type"]>(commands: Step["commands"], type: Type) =>
  commands.filter(
    (command): command is Extract<ConversationCommand, { type: Type }> => command.type === type,
  );
/** Messages that wait or are on their way. */
const unsent = ({ context: { queue, sending } }: ConversationSnapshot) =>
  [...queue, ...(sending === null ? [] : [sending])].toSorted();
const isResting = ({ context }: ConversationSnapshot) =>
  context.sandboxId !== null && context.turn <= context.ended && context.requests.length === 0;

describeModel<ConversationSnapshot, ConversationEvent, ConversationCommand>(
  {
    machine: conversation,
    definition: conversationMachine,
    events,
    isDense: true,
    memory: Effect.sync(() => ({ id: "conversation", memory: volatileMemory(conversation.start({})) })),
  },
  {
    "M1: the oldest message goes out first, and urgent ones before it": everyStep(
      ({ before, event, commands }) => {
        for (const { messageId } of commanded(commands, "sendMessage")) {
          const { queue, sending } = before.context;
          const isBack = event.type === "runtime.reported" && event.sandboxId !== before.context.sandboxId;
          const returned = event.type === "message.deferred" || isBack ? [sending] : [];
          const posted = event.type === "message.posted" ? [event.messageId] : [];
          const isUrgent = event.type === "message.posted" && event.isUrgent;
          const waiting = isUrgent ? [...posted, ...queue] : [...returned, ...queue, ...posted];
          expect(messageId).toBe(waiting.find((id) => id !== null));
        }
      },
    ),
    "M2: a message goes out only to a runtime that rests, and alone": everyStep(({ snapshot, commands }) => {
      const sent = commanded(commands, "sendMessage");
      expect(sent.length).toBeLessThanOrEqual(1);
      for (const { messageId, sandboxId } of sent)
        expect([snapshot.context, isResting(snapshot)]).toEqual([
          expect.objectContaining({ sending: messageId, sandboxId }),
          true,
        ]);
      expect(snapshot.state === "sending").toBe(snapshot.context.sending !== null);
    }),
    "M3: a message on its way waits again when its sandbox ends": everyStep(({ before, snapshot }) => {
      const { sending, sandboxId } = before.context;
      if (sending === null || snapshot.context.sandboxId === sandboxId) return;
      expect([snapshot.context.sending, ...snapshot.context.queue].find((id) => id !== null)).toBe(sending);
    }),
    "M3: no message is lost, and none waits twice": everyStep(({ before, event, accepted, snapshot }) => {
      const added = accepted && event.type === "message.posted" ? [event.messageId] : [];
      const leaves = ["message.cancelled", "message.accepted", "message.refused"].includes(event.type);
      const gone = accepted && leaves && "messageId" in event ? [event.messageId] : [];
      const expected = [...unsent(before), ...added].filter((id) => !gone.includes(id)).toSorted();
      expect(unsent(snapshot)).toEqual(expected);
    }),
    "M4: after an interrupt nothing goes out until a person says so": everyStep(
      ({ before, event, snapshot, commands }) => {
        if (!before.context.held || snapshot.context.held) {
          if (snapshot.context.held) expect(commanded(commands, "sendMessage")).toEqual([]);
          return;
        }
        expect(["message.posted", "queue.resumed", "interrupt.requested"]).toContain(event.type);
      },
    ),
    "M5: an interrupt names a turn that has not ended": everyStep(({ event, snapshot, commands }) => {
      for (const { turn } of commanded(commands, "interruptTurn")) {
        expect(turn).toBe("turn" in event ? event.turn : snapshot.context.turn);
        expect(turn).toBeGreaterThan(snapshot.context.ended);
      }
    }),
    "M6: a request is answered once": everyStep(({ before, commands }) => {
      for (const { requestId } of commanded(commands, "answerRequest"))
        if (before.context.requests.includes(requestId))
          expect(before.context.answered).not.toContain(requestId);
    }),
    "M7: where no person attends, the oldest request is declined in the step that learns of it": everyStep(
      ({ snapshot, commands }) => {
        const { attended, requests, answered } = snapshot.context;
        if (snapshot.state !== "requires_action" || attended) return;
        expect(requests.filter((id) => !answered.includes(id))).toEqual([]);
        for (const { answer } of commanded(commands, "answerRequest"))
          expect(answer).toEqual({ declined: "unattended" });
      },
    ),
    "an idle conversation has nothing to send": everyStep(({ snapshot: { state, context } }) => {
      if (state !== "idle") return;
      expect(context.sandboxId === null || context.held || context.queue.length === 0).toBe(true);
    }),
  },
);

/** The last step of these events, one after the other. */
const after = (...told: readonly ConversationEvent[]) =>
  told.reduce((step, event) => conversation.step(step.snapshot, event), conversation.start({}));
const posted = (messageId: string): ConversationEvent => ({
  type: "message.posted",
  messageId,
  isUrgent: false,
  message,
});

describe("a conversation's queue", () => {
  test("takes a limited number of messages, each of them once", () => {
    const ids = Array.from({ length: QUEUE_MAX }, (_, index) => `message ${index}`);
    expect(after(...ids.map(posted)).accepted).toBe(true);
    expect(after(...ids.map(posted), posted("one more")).accepted).toBe(false);
    expect(after(posted("a"), posted("a")).accepted).toBe(false);
  });

  test("does not take a message again that the agent has, or that was taken back [D01]", () => {
    const accepted = { ...outcome, type: "message.accepted", turn: 1 } as const;
    const has = after(report, posted("a"), accepted, posted("a"));
    expect([has.accepted, has.snapshot.context.queue]).toEqual([false, []]);
    const cancelled = { type: "message.cancelled", messageId: "a" } as const;
    expect(after(posted("a"), cancelled, posted("a")).accepted).toBe(false);
    const refused = { ...outcome, type: "message.refused", error: { code: "no", message: "No." } } as const;
    expect(after(report, posted("a"), refused, posted("a")).accepted).toBe(false);
  });

  test("remembers a message that the agent of the sandbox before has had", () => {
    const accepted = { ...outcome, type: "message.accepted", turn: 1 } as const;
    const gone = { type: "runtime.gone", sandboxId: "one" } as const;
    expect(after(report, posted("a"), accepted, gone, posted("a")).accepted).toBe(false);
  });

  test("gives a deferred message its place before the others", () => {
    const { snapshot } = after(report, posted("a"), posted("b"), {
      ...outcome,
      type: "message.deferred",
      turn: 1,
    });
    expect([snapshot.state, snapshot.context.queue]).toEqual(["running", ["a", "b"]]);
  });
});

describe("a request of the agent", () => {
  const answer = { choice: "once", message: null } as const;
  const given = { type: "answer.given", requestId: "r", answer, by: author } as const;
  const asks = { ...report, seq: 4, isWorking: true, requests: ["r"] };

  test("that has its answer is not opened again by a report that comes late", () => {
    const closed = { ...report, seq: 6, isWorking: true };
    const late = after(asks, given, closed, asks);
    expect([late.snapshot.state, late.snapshot.context.requests]).toEqual(["running", []]);
    expect(after(asks, given, closed, asks, given).accepted).toBe(false);
  });

  test("stays open after a report from before it, also one of the sandbox before", () => {
    const earlier = after(asks, { ...report, seq: 3, isWorking: true }).snapshot;
    expect([earlier.state, earlier.context.requests]).toEqual(["requires_action", ["r"]]);
    const former = after(asks, { ...report, seq: 3, sandboxId: "zero" }).snapshot;
    expect([former.context.sandboxId, former.context.requests]).toEqual(["one", ["r"]]);
  });
});

const settles = (answer: object) => ({ type: "answerRequest", sandboxId: "one", requestId: "p", answer });
const sends = (messageId: string) => ({ type: "sendMessage", sandboxId: "one", messageId });
const moved = ({ snapshot, commands }: Pick<Step, "snapshot" | "commands">) => [snapshot.state, commands];
describe("a plan (M9)", () => {
  const plan = { ...report, ended: 1, requests: ["p"], plans: ["p"] } as const;
  const inTurn = { ...report, isWorking: true, requests: ["p"], plans: ["p"] } as const;
  const approve = { approve: true, mode: "build" } as const;
  const begins = { messageId: "c", message };
  const approved = { type: "answer.given", requestId: "p", answer: approve, by: author, begins } as const;

  test("waits after its turn, also where no person attends, and its approval begins the next turn", () => {
    expect(moved(after({ ...plan, isAttended: false }))).toEqual(["requires_action", []]);
    expect(moved(after(plan, approved))).toEqual(["sending", [settles(approve), sends("c")]]);
    expect(after(plan, approved, approved).accepted).toBe(false);
    expect(after(plan, { type: "interrupt.requested" }).accepted).toBe(false);
  });

  test("goes on with its own turn when it is approved in it", () => {
    const { begins: _, ...approval } = approved;
    expect(moved(after(inTurn, approval))).toEqual(["requires_action", [settles(approve)]]);
  });

  test("that is approved before the end of its turn is known is carried out after it", () => {
    expect(moved(after(inTurn, approved))).toEqual(["requires_action", [settles(approve)]]);
    const ended = { ...report, ended: 1, seq: 1 };
    expect(moved(after(inTurn, approved, ended))).toEqual(["sending", [sends("c")]]);
    expect(moved(after(inTurn, approved, { ...plan, seq: 1 }))).toEqual(["sending", [sends("c")]]);
  });

  test("is settled by a message, which goes out when no turn runs", () => {
    const settled = settles({ declined: "message" });
    expect(moved(after(plan, posted("a")))).toEqual(["sending", [settled, sends("a")]]);
    expect(moved(after(inTurn, posted("a")))).toEqual(["requires_action", [settled]]);
    expect(moved(after(report, { ...report, isWorking: true }, posted("a"), plan))).toEqual([
      "sending",
      [settled, sends("a")],
    ]);
  });

  test("holds back nothing that its turn's message begins", () => {
    const accepted = { type: "message.accepted", messageId: "c", sandboxId: "one", turn: 2 } as const;
    const { snapshot, commands } = after(plan, approved, accepted, posted("a"));
    expect([snapshot.state, commands, snapshot.context.queue]).toEqual(["requires_action", [], ["a"]]);
  });

  test("that is declined after its time leaves an idle conversation", () => {
    const expired = { declined: "expired" } as const;
    const late = { type: "answer.given", requestId: "p", answer: expired, by: null } as const;
    expect(moved(after(plan, late))).toEqual(["requires_action", [settles(expired)]]);
    expect(moved(after(plan, late, { ...report, ended: 1, seq: 1 }))).toEqual(["idle", []]);
  });
});

describe("a conversation's turn", () => {
  const accepted = { ...outcome, type: "message.accepted", turn: 1 } as const;

  test("is not begun again by a report that comes late", () => {
    const { snapshot } = after({ ...report, ended: 2 }, { ...report, ended: 1, isWorking: true });
    expect(snapshot.state).toBe("idle");
    expect(snapshot.context).toMatchObject({ ended: 2, turn: 2 });
  });

  test("that ended before its message was known to be accepted is over", () => {
    expect(after(report, posted("a"), { ...report, ended: 1 }, accepted).snapshot.state).toBe("idle");
  });

  test("is interrupted as soon as it has a number", () => {
    const interrupt = { type: "interrupt.requested" } as const;
    expect(after(report, posted("a"), interrupt).commands).toEqual([]);
    const { snapshot, commands } = after(report, posted("a"), interrupt, accepted);
    expect(commands).toEqual([{ type: "interruptTurn", sandboxId: "one", turn: 1 }]);
    expect([snapshot.state, snapshot.context.stopping]).toEqual(["running", false]);
  });

  test("is not interrupted in the place of the turn before it", () => {
    const next = { ...report, ended: 1, isWorking: true };
    const { snapshot, commands } = after(
      report,
      posted("a"),
      { type: "interrupt.requested" },
      next,
      accepted,
    );
    expect(commands).toEqual([]);
    expect([snapshot.state, snapshot.context.turn]).toEqual(["running", 2]);
  });

  test("without a person has each of its requests declined", () => {
    const asked = { ...report, requests: ["r", "s"], isAttended: false };
    const declined = { sandboxId: "one", answer: { declined: "unattended" } };
    expect(after(asked).commands).toEqual([{ type: "answerRequest", requestId: "r", ...declined }]);
    const { commands } = after(asked, { ...asked, requests: ["s"] });
    expect(commands).toEqual([{ type: "answerRequest", requestId: "s", ...declined }]);
  });
});

const stepped = (given: readonly ConversationEvent[]) =>
  given.reduce<Pick<Step, "snapshot" | "commands">>(
    ({ snapshot }, event) => conversation.step(snapshot, event),
    conversation.start({}),
  );

test("a message of the service waits in a queue that a person's interrupt holds, and a person's message lets both go", () => {
  const service = {
    kind: "service",
    userId: null,
    name: "platform",
    triggerSlug: null,
    fireId: null,
  } as const;
  const post = (messageId: string, by: typeof author | typeof service): ConversationEvent => ({
    type: "message.posted",
    messageId,
    isUrgent: false,
    message: { ...message, author: by },
  });
  const interrupted = [
    { ...report, isWorking: true },
    post("a", author),
    { type: "interrupt.requested" } as const,
    { ...report, ended: 1, seq: 1 },
  ];
  const held = stepped([...interrupted, post("b", service)]);
  expect(held.snapshot).toMatchObject({ state: "idle", context: { held: true, queue: ["a", "b"] } });
  expect(held.commands).toEqual([]);
  const released = stepped([...interrupted, post("b", service), post("c", author)]);
  expect(released.snapshot.context).toMatchObject({ held: false, sending: "a", queue: ["b", "c"] });
});
