/**
 * Messages, interrupts and answers of people, on their way to the agent runtime (src/domain/conversation/steering.ts), and the turns
 * that they begin.
 *
 *  E1 Handovers and interrupts take turns. So an interrupt that is under way never meets a later turn (Y3).
 *  E2 A message that was accepted is accepted again, with the same turn (Y1).
 *  E3 While a turn is open, the runtime is asked again and again whether it rests. Events only say when to ask immediately. So
 *     no lost or late event keeps a turn open, or ends a wrong one.
 *  E4 A call that has begun is completed, even if its caller has left.
 *  E5 A stopped turn ends, whatever the runtime does: with its process, if need be.
 *  E6 A turn that goes on with another agent (fallback.ts) stays the same turn. It counts as being handed over until the runtime has
 *     the message again, so nothing else ends it meanwhile.
 *  E7 The end of each message's turn is told, even if the runtime does not: because it has died, or rests without a word of an answer.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Latch from "effect/Latch";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import * as SchemaIssue from "effect/SchemaIssue";
import type * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";
import { thrownText } from "../../src/ground/thrown.ts";
import { BoundedMap } from "../../src/ground/bounded-map.ts";
import type { ItemError, TurnNow } from "../../src/domain/conversation/conversation.ts";
import {
  AnswerOrder,
  InterruptOrder,
  MESSAGE_TEXT_MAX,
  OutgoingMessage,
  type MessageHandedOver,
} from "../../src/domain/conversation/steering.ts";
import type { ConversationTurn } from "../../src/domain/session/last-turn.ts";
import {
  TURN_LIMITS,
  type AdapterSteering,
  type AgentSession,
  type ConversationObserver,
  type Handover,
  type RuntimeAdapter,
} from "../adapters/adapter.ts";
import { NO_ANSWER, NOT_STOPPED, RUNTIME_ENDED } from "../adapters/turn-errors.ts";
import type { LaunchFallback } from "../../src/domain/sandbox/launch.ts";
import type { AttachedFile, Attachments } from "./attachments.ts";
import {
  type ControlAnswer,
  ENDING,
  invalid,
  NOT_READY,
  NOT_SUPPORTED,
  refusal,
  type ControlRefusal,
} from "../http/answer.ts";
import type { ConversationFeed } from "../conversation/feed.ts";
import type { HttpFailure } from "../http/client.ts";
import type { Log } from "../logs/log.ts";
import type { Report, TurnEnd } from "../report.ts";
import type { SteeringName } from "../http/route.ts";
import { Fallback, type Onward } from "./fallback.ts";
import { Planning, type PlanningOptions } from "./planning.ts";
import { type OpenTurn, TurnBook } from "./turn-book.ts";

export interface SteeringOptions {
  readonly adapter: Pick<RuntimeAdapter, "steering">;
  readonly report: Pick<Report, "serving"> & { readonly turn: Pick<Report["turn"], "active"> };
  readonly feed: ConversationFeed;
  readonly log: Log;
  readonly session: AgentSession;
  /** Absent: the runtime has no mode that plans. */
  readonly planning?: Pick<PlanningOptions, "plan" | "own">;
  /** The agents with which a turn goes on if its model refuses. Absent: none. */
  readonly fallback?: readonly LaunchFallback[];
  /** The mode that a person chose in a former sandbox. Absent, as null: none. */
  readonly chosenMode?: string | null;
  readonly attachments: Pick<Attachments, "missing" | "files">;
  /** Ends the runtime's process, and starts it again. */
  readonly restart: Effect.Effect<void>;
}

/** Never rejects. */
export type SteeringSurface = (name: SteeringName, body: unknown) => Promise<ControlAnswer>;

/** E5. An adapter that can end its runtime's turn itself (`TurnLimits.stopMs`) comes first. */
const STOPS_WITHIN_MS = TURN_LIMITS.stopMs + 1000;
/** How soon the runtime is asked after a sign of rest. The pause doubles with each answer that it works. */
const CHECK_SOON_MS = 100;
const CHECK_EVERY_MS = 2000;
/** How many accepted messages are remembered (E2). The service repeats only its newest one. */
const ACCEPTED_KEPT = 256;

/** How often a message is given again for E6, while the runtime does not answer. */
const AGAIN = { schedule: Schedule.spaced("500 millis"), times: 20 };
const NOT_TAKEN_AGAIN: ItemError = {
  code: "model_unavailable",
  message: "The agent runtime did not take the message again with another model. Send it again.",
};

const UNREACHABLE = refusal(
  502,
  "upstream_unreachable",
  "The agent runtime did not respond. The call may have been carried out. It can be repeated.",
);

const decodeMessage = Schema.decodeUnknownResult(OutgoingMessage);
const decodeInterrupt = Schema.decodeUnknownResult(InterruptOrder);
const decodeAnswer = Schema.decodeUnknownResult(AnswerOrder);

const formatter = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: ({ _tag }) =>
    _tag === "MissingKey" ? "missing field" : "another value than the contract allows",
});

/** The body as it should be, or the refusal. */
const read = <A>(result: Result.Result<A, Schema.SchemaError>): { readonly body: A } | ControlRefusal => {
  if (Result.isSuccess(result)) return { body: result.success };
  const [issue] = formatter(result.failure.issue).issues;
  const path = (issue?.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  return invalid(path.join("."), issue?.message ?? "another value than the contract allows");
};

/** The surface, and the duty of E3, while the scope lives. */
export const makeSteering = Effect.fnUntraced(function* (
  steering: Steering,
): Effect.fn.Return<SteeringSurface, never, Scope.Scope> {
  const scope = yield* Effect.scope;
  yield* Effect.forkScoped(steering.watch);
  yield* Effect.forkScoped(steering.endDeaf);
  yield* Effect.forkScoped(steering.goOnward);
  return (name, body) =>
    Effect.runPromise(
      Effect.flatMap(Effect.forkIn(steering.handle(name, body), scope), Fiber.join).pipe(
        Effect.catchCause(() => Effect.succeed(ENDING)),
      ),
    );
});

export class Steering {
  /** Receives the runtime's conversation. */
  readonly observer: ConversationObserver;
  readonly #options: SteeringOptions;
  readonly #book: TurnBook;
  readonly #planning: Planning;
  readonly #fallback: Fallback;
  /** E6. The turn that goes on, and what ends it if that does not succeed. */
  #onward: (Onward & { readonly turn: number; readonly fail: (end: TurnEnd) => void }) | null = null;
  /** Open while a turn has to go on. */
  readonly #isOnward = Latch.makeUnsafe(false);
  /** E1. */
  readonly #calls = Semaphore.makeUnsafe(1);
  /** The turns of messages that were accepted. */
  readonly #accepted = new BoundedMap<string, number>(ACCEPTED_KEPT);
  /** Open while there is something to ask the runtime immediately. */
  readonly #due = Latch.makeUnsafe(false);
  #pauseMs = CHECK_SOON_MS;
  #isPrepared = false;
  #isEnding = false;
  /** The runtime's silence is logged once. */
  #isSilent = false;
  /** Open when a person stops a turn. */
  readonly #stopped = Latch.makeUnsafe(false);
  /** E5. The process is ended for this reason. */
  #cut: ItemError | null = null;
  /** E7. Takes ends that the runtime does not tell. What supervises the runtime sets it. */
  onUntold: (end: TurnEnd) => void = () => undefined;

  constructor(options: SteeringOptions) {
    const { feed, adapter, planning, session, fallback = [], chosenMode = null } = options;
    this.#options = options;
    this.#planning = new Planning({
      feed,
      ...(planning ?? { plan: null, own: null }),
      chosen: chosenMode,
      modes: () => adapter.steering?.modes() ?? [],
      now: () => feed.now(),
    });
    this.#book = new TurnBook(this.#planning.turn);
    const noteTargets = { item: this.#planning.item, now: () => feed.now() };
    this.#fallback = new Fallback(
      { agents: fallback, model: session.model, ...noteTargets },
      chosenMode !== null,
    );
    this.observer = {
      item: this.#fallback.item,
      grown: feed.grown,
      turn: (now) => this.#observed(now),
      titled: feed.titled,
    };
  }

  /** Whether a turn is open, including one that the runtime has not begun yet. */
  get isTurnOpen(): boolean {
    return this.#book.open !== null;
  }

  /**
   * The runtime ends a turn. @returns whether the turn goes on with another agent (E6)
   *
   * @param fail called if it could not go on after all, with its end
   */
  fallsBack(end: TurnEnd, fail: (end: TurnEnd) => void): boolean {
    const { open } = this.#book;
    if (open === null || open.messageId === null || open.isStopping) {
      this.#fallback.tellHeld();
      return false;
    }
    const onward = this.#fallback.ends(end);
    if (onward === null) return false;
    this.#onward = { ...onward, turn: this.#book.begin(open.messageId), fail };
    this.#isOnward.openUnsafe();
    return true;
  }

  /** The end of a turn is told. */
  turnEnded(end: TurnEnd): void {
    this.#fallback.told();
    if (end.isOurs === true && end.error !== null) this.#options.feed.turnEnded(end.error);
    this.#planning.turnEnds(end);
  }

  /** The turn that is open or was the last one. Null if the runtime's turns are not counted. */
  get newestTurn(): ConversationTurn | null {
    return this.#options.adapter.steering === null ? null : this.#book.newest;
  }

  /** The initial prompt will be handed over: it is the first turn. */
  promptPending(): void {
    const { adapter, session } = this.#options;
    if (adapter.steering === null) return;
    this.#fallback.begins(session.sessionId, { model: null, agent: null });
    this.#book.begin(session.sessionId);
  }

  /** The runtime has accepted the initial prompt. */
  get promptAccepted(): Effect.Effect<void> {
    return Effect.map(Clock.currentTimeMillis, (nowMs) => {
      const { open } = this.#book;
      if (open !== null) this.#handed(open.number, { hasBegun: false, nowMs });
      this.#askSoon();
    });
  }

  /** The runtime will never accept the initial prompt. E7: its turn needs no answer. */
  promptRefused(reason: string): void {
    const { open } = this.#book;
    if (open === null) return;
    this.#book.refused(open.number);
    const error = { code: "message_not_taken", message: reason };
    this.#tellUntold(open, { state: "failed", isOurs: true, error });
  }

  /** The agent session has what it gets before any message. */
  prepared(): void {
    this.#isPrepared = true;
  }

  /** The sandbox is about to end. A message that comes now waits in the service for the next sandbox. */
  end(): void {
    this.#isEnding = true;
  }

  /** It stays after all. */
  goOn(): void {
    this.#isEnding = false;
  }

  /** The runtime's process is gone. */
  runtimeEnded(): void {
    const { open } = this.#book;
    // The items first: the turn's end is told after them.
    this.#fallback.tellHeld();
    this.#options.feed.runtimeEnded();
    this.#planning.lose();
    this.#book.runtimeEnded();
    // A turn whose beginning was told is cut by what supervises the runtime.
    if (open?.isHanding !== false || this.#options.report.turn.active === true) return;
    this.#tellUntold(open, this.cutEnd());
  }

  /** How a turn ends that the end of the runtime's process cuts off. Asked once a process. */
  cutEnd(): TurnEnd {
    const error = this.#cut ?? RUNTIME_ENDED;
    this.#cut = null;
    return { state: "interrupted", isOurs: true, error };
  }

  /** E5. */
  get endDeaf(): Effect.Effect<never> {
    return Effect.forever(
      Effect.gen({ self: this }, function* () {
        yield* this.#stopped.await;
        this.#stopped.closeUnsafe();
        const { number = null } = this.#book.open ?? {};
        yield* Effect.sleep(STOPS_WITHIN_MS);
        const { open } = this.#book;
        if (open?.isStopping !== true || open.number !== number) return;
        this.#options.log("the agent runtime does not stop its turn, so its process ends", { turn: number });
        this.#cut = NOT_STOPPED;
        yield* this.#options.restart;
      }),
    );
  }

  handle(name: SteeringName, body: unknown): Effect.Effect<ControlAnswer> {
    const { steering } = this.#options.adapter;
    if (steering === null) return Effect.succeed(NOT_SUPPORTED);
    if (name === "models")
      return this.#asked(
        name,
        Effect.map(steering.offers(this.#options.session), (done) => ({ done })),
      );
    if (name === "messages") return this.#message(steering, read(decodeMessage(body)));
    if (name === "interrupt") return this.#interrupt(steering, read(decodeInterrupt(body)));
    const order = read(decodeAnswer(body));
    if ("status" in order) return Effect.succeed(order);
    const { request_id: id, answer } = order.body;
    if (this.#planning.answer(id, answer)) return Effect.succeed({ done: { answered: true } });
    return this.#asked(
      name,
      Effect.map(steering.answer(id, answer), (isTaken) => {
        if (isTaken && "approve" in answer) this.#planning.chose(answer.mode);
        return { done: { answered: isTaken } };
      }),
    );
  }

  /** E3. */
  get watch(): Effect.Effect<never> {
    return Effect.forever(
      Effect.gen({ self: this }, function* () {
        const { open } = this.#book;
        const isIdle = open === null || open.isHanding;
        yield* isIdle ? this.#due.await : Effect.timeoutOption(this.#due.await, this.#pauseMs);
        this.#due.closeUnsafe();
        this.#pauseMs = Math.min(2 * this.#pauseMs, CHECK_EVERY_MS);
        // A defect must not end the loop: a turn would stay open for ever.
        yield* Effect.catchCause(this.#check, (cause) => Effect.sync(() => this.#silent("turn", cause)));
      }),
    );
  }

  #observed(now: TurnNow): void {
    this.#book.observed(now);
    // The conversation and the book differ: one of them is late.
    if ((now.state === "idle") === this.isTurnOpen) this.#askSoon();
  }

  #askSoon(): void {
    this.#pauseMs = CHECK_SOON_MS;
    this.#due.openUnsafe();
  }

  /** E7. @param turn the one that has ended */
  #tellUntold(turn: OpenTurn | null, end: TurnEnd): void {
    if (turn !== null && turn.messageId !== null && !this.#fallback.isTold) this.onUntold(end);
  }

  /** Asks once whether the runtime rests. */
  get #check(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { adapter, report, session } = this.#options;
      const { open } = this.#book;
      if (adapter.steering === null || !report.serving || open?.isHanding === true) return;
      const { messageId = null, number = null } = open ?? {};
      const sight = yield* Effect.exit(adapter.steering.look(session.sessionId, messageId));
      if (Exit.isFailure(sight)) return this.#silent("turn", sight.cause);
      this.#isSilent = false;
      if (!sight.value.isBusy) {
        const { hasBegun } = sight.value;
        const nowMs = yield* Clock.currentTimeMillis;
        if (number === null) return;
        // A stopped turn goes on with nothing and needs no answer.
        const { isStopping = false } = open ?? {};
        if (!isStopping && !this.#fallback.isOver(nowMs)) this.#pauseMs = CHECK_SOON_MS;
        else if (this.#book.sawRest(number, { hasBegun, nowMs }) && !isStopping && !hasBegun)
          this.#tellUntold(open, { state: "failed", isOurs: true, error: NO_ANSWER });
        return;
      }
      this.#book.sawWork(number);
      if (this.#book.open?.isStopping === true)
        yield* this.#stopNow(adapter.steering, this.#book.open.number);
    });
  }

  #message(
    steering: AdapterSteering,
    order: { readonly body: OutgoingMessage } | ControlRefusal,
  ): Effect.Effect<ControlAnswer> {
    return Effect.suspend(() => {
      if ("status" in order) return Effect.succeed(order);
      const message = order.body;
      if (Buffer.byteLength(message.text) > MESSAGE_TEXT_MAX)
        return Effect.succeed(invalid("text", `must have at most ${MESSAGE_TEXT_MAX} bytes`));
      const { open } = this.#book;
      // Answered immediately. A repeated message waits for its own handover instead.
      if (open !== null && open.messageId !== message.id && !this.#accepted.has(message.id))
        return Effect.succeed(toAnswer({ outcome: "busy", turn: open.number }));
      return this.#calls.withPermit(this.#handOver(steering, message));
    });
  }

  #handOver(steering: AdapterSteering, message: OutgoingMessage): Effect.Effect<ControlAnswer> {
    return Effect.gen({ self: this }, function* () {
      const acceptedTurn = this.#accepted.get(message.id);
      if (acceptedTurn !== undefined) return toAnswer({ outcome: "accepted", turn: acceptedTurn });
      if (this.#isEnding) return ENDING;
      if (!this.#options.report.serving || !this.#isPrepared) return NOT_READY;
      const { open } = this.#book;
      if (open !== null && open.messageId !== message.id)
        return toAnswer({ outcome: "busy", turn: open.number });
      const { attachments } = this.#options;
      const files = message.attachments ?? [];
      const missing = attachments.missing(files);
      if (missing.length > 0) return toAnswer({ outcome: "incomplete", attachments: missing });
      const turn = this.#book.begin(message.id);
      this.#fallback.begins(message.id, message);
      const handover = yield* Effect.exit(this.#hand(steering, message, attachments.files(files)));
      const nowMs = yield* Clock.currentTimeMillis;
      this.#askSoon();
      if (Exit.isSuccess(handover)) return toAnswer(this.#outcome(handover.value, { message, turn, nowMs }));
      // The runtime may have it.
      this.#handed(turn, { hasBegun: false, nowMs });
      this.#silent("messages", handover.cause);
      return UNREACHABLE;
    });
  }

  #outcome(
    handover: Handover,
    {
      message: { id, agent },
      turn,
      nowMs,
    }: { readonly message: OutgoingMessage; readonly turn: number; readonly nowMs: number },
  ): MessageHandedOver {
    // E6. The runtime has told a failure of the turn meanwhile.
    if (handover.outcome === "refused" && this.#onward?.turn !== turn) {
      this.#book.refused(turn);
      return handover;
    }
    if (handover.outcome === "busy") {
      this.#book.foundBusy(turn);
      return { ...handover, turn };
    }
    this.#planning.chose(agent);
    this.#handed(turn, { hasBegun: true, nowMs });
    this.#accepted.set(id, turn);
    return { outcome: "accepted", turn };
  }

  /** The runtime has the message of the turn, unless it gets it again (E6). */
  #handed(turn: number, how: { readonly hasBegun: boolean; readonly nowMs: number }): void {
    if (this.#onward?.turn !== turn) this.#book.handed(turn, how);
  }

  /** Hands a message over. If it names no model and the present one does not exist, it goes with that of the next agent. */
  #hand(
    steering: AdapterSteering,
    message: OutgoingMessage,
    files: readonly AttachedFile[],
  ): Effect.Effect<Handover, HttpFailure> {
    return Effect.gen({ self: this }, function* () {
      const { session } = this.#options;
      let handover = yield* steering.hand(session, message, files);
      while (handover.outcome === "refused" && message.model === null && this.#onward === null) {
        const onward = this.#fallback.ends({ state: "failed", error: handover.error });
        if (onward === null) return handover;
        this.#note(onward.note);
        const { model, mode, effort } = onward.agent;
        const next = { ...message, model, agent: mode ?? message.agent };
        handover = yield* steering.hand(session, effort === undefined ? next : { effort, ...next }, files);
      }
      return handover;
    });
  }

  /** E6. */
  get goOnward(): Effect.Effect<never> {
    return Effect.forever(
      Effect.gen({ self: this }, function* () {
        yield* this.#isOnward.await;
        this.#isOnward.closeUnsafe();
        const { steering } = this.#options.adapter;
        if (steering !== null) yield* this.#calls.withPermit(this.#goOn(steering));
      }),
    );
  }

  #goOn(steering: AdapterSteering): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      for (let onward = this.#onward; onward !== null; onward = this.#onward) {
        const { agent, note, turn, fail } = onward;
        this.#note(note);
        const again = Effect.retry(steering.again(this.#options.session, agent), AGAIN);
        const retry = yield* Effect.exit(this.#book.open?.isStopping === true ? Effect.succeed(null) : again);
        // The runtime has told the next failure already.
        if (this.#onward !== onward) continue;
        const nowMs = yield* Clock.currentTimeMillis;
        const handover = Exit.isSuccess(retry)
          ? retry.value
          : { outcome: "refused" as const, error: NOT_TAKEN_AGAIN };
        this.#onward = null;
        if (handover?.outcome === "refused") {
          const end: TurnEnd = { state: "failed", error: handover.error, isOurs: true };
          const next = Exit.isSuccess(retry) ? this.#fallback.ends(end) : null;
          if (next !== null) {
            this.#onward = { ...next, turn, fail };
            continue;
          }
          fail(end);
          this.#book.refused(turn);
        } else if (handover === null) {
          fail({ state: "interrupted", error: null });
          this.#book.refused(turn);
        } else {
          this.#planning.chose(agent.mode);
          this.#book.handed(turn, { hasBegun: true, nowMs });
        }
        this.#askSoon();
      }
    });
  }

  /** Tells people something of the present turn. */
  #note(text: string): void {
    this.#options.feed.noteOfTurn("fallback", text);
  }

  #interrupt(
    steering: AdapterSteering,
    order: { readonly body: InterruptOrder } | ControlRefusal,
  ): Effect.Effect<ControlAnswer> {
    return Effect.suspend(() => {
      if ("status" in order) return Effect.succeed(order);
      const { turn } = order.body;
      const { open } = this.#book;
      if (open?.number !== turn) return Effect.succeed({ done: { interrupted: false } });
      // It is stopped once the runtime has it.
      if (open.isHanding) return Effect.succeed({ done: { interrupted: this.#stop(turn) } });
      return Effect.map(this.#stopNow(steering, turn), (isStopped) =>
        isStopped === null ? UNREACHABLE : { done: { interrupted: isStopped } },
      );
    });
  }

  /** Whether the turn is open. */
  #stop(turn: number): boolean {
    if (this.#book.open?.isStopping !== true) this.#stopped.openUnsafe();
    return this.#book.stop(turn);
  }

  /** Whether the turn is open. If it has not begun yet, it is stopped again later. Null if the runtime did not answer. */
  #stopNow(steering: AdapterSteering, turn: number): Effect.Effect<boolean | null> {
    return this.#calls.withPermit(
      Effect.gen({ self: this }, function* () {
        if (!this.#stop(turn)) return false;
        if (!this.#options.report.serving) return true;
        const interruption = yield* Effect.exit(steering.interrupt(this.#options.session.sessionId));
        this.#askSoon();
        if (Exit.isSuccess(interruption)) return true;
        this.#silent("interrupt", interruption.cause);
        return null;
      }),
    );
  }

  /** The answer of a call that needs the runtime. */
  #asked(name: SteeringName, call: Effect.Effect<ControlAnswer, HttpFailure>): Effect.Effect<ControlAnswer> {
    return Effect.suspend(() =>
      this.#options.report.serving
        ? Effect.catchCause(call, (cause) => {
            this.#silent(name, cause);
            return Effect.succeed(UNREACHABLE);
          })
        : Effect.succeed(NOT_READY),
    );
  }

  #silent(call: SteeringName | "turn", cause: Cause.Cause<unknown>): void {
    const error = Cause.squash(cause);
    const message = thrownText(error);
    if (call !== "turn" || !this.#isSilent)
      this.#options.log("the agent runtime did not answer", { call, message });
    if (call === "turn") this.#isSilent = true;
  }
}

const toAnswer = (done: MessageHandedOver): ControlAnswer => ({ done });
