/**
 * One agent that speaks the Agent Client Protocol, over all its processes: its session and its turns.
 *
 *  G1 At most one prompt is in progress. A message is handed over once: what this adapter has sent counts as taken, because
 *     its process has it, or is gone with its turn.
 *  G2 Each process opens one session. If the agent can, it is the session of the process before, or in a fresh sandbox the one whose
 *     record was brought back.
 *  G3 An agent that opens a session again may repeat its history, some also after their answer. People are not told it twice.
 */
import type { TurnEnd } from "../../report.ts";
import type {
  AvailableCommand,
  ContentBlock,
  RequestPermissionRequest,
  SessionUpdate,
} from "@agentclientprotocol/sdk";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Schema from "effect/Schema";
import type { TurnError } from "../../../src/domain/session/last-turn.ts";
import type { RequestAnswer } from "../../../src/domain/conversation/steering.ts";
import type { HttpFailure } from "../../http/client.ts";
import type { ContextUse } from "../../../src/domain/conversation/conversation.ts";
import type { GatewayCalls, GatewayRefusal } from "../../agent/gateway-calls.ts";
import type { Pipes } from "../../agent/process.ts";
import { AcpChoices } from "./choices.ts";
import { AcpConversation, type Sent, type Spent } from "./conversation.ts";
import { isOwnText } from "./items.ts";
import { AcpRequests, permittingOption } from "./requests.ts";
import {
  costIn,
  endOfAnswer,
  endOfRefusal,
  INTERRUPTED,
  isFinal,
  ModelCalls,
  refusedBy,
  toldNothing,
  turnUsage,
} from "./turns.ts";
import { AcpWire, AgentRefusal, silent, type Capabilities } from "./wire.ts";
import type { BroughtHistory } from "../../saving/command.ts";
import type { Observers, Restoring, TurnLimits } from "../adapter.ts";
import { NOT_STOPPED, silentModel, tooLong, tooManyCalls } from "../turn-errors.ts";

/** How long an agent may take to open a session. Then it is asked again. */
const OPEN_WITHIN = "60 seconds";
/** An agent may overlook that it is stopped while its turn begins. So it hears it again, but not more often than this. */
const STOP_AGAIN_MS = 2000;
/** How often a turn is checked for silence. */
const CHECK_EVERY = "1 second";

const SessionBegun = Schema.Struct({ sessionId: Schema.String });
const decodeBegun = Schema.decodeUnknownOption(SessionBegun);

/** The session of one process. */
export interface OpenSession {
  readonly wire: AcpWire;
  readonly id: string;
  readonly choices: AcpChoices;
  readonly capabilities: Capabilities;
  /** The modes that it offered when it began, the one in which it began first. */
  readonly modes: readonly string[];
  /** Whether it has had a message, and with it the instructions. */
  isInstructed: boolean;
  /** Whether it has had a message from this process: before, it may tell its history again (G3). */
  isPrompted: boolean;
}

interface Turn {
  readonly session: OpenSession;
  readonly calls: ModelCalls;
  readonly sinceMs: number;
  /** When the agent told something last, ms since the epoch. */
  toldMs: number;
  /** How many pieces of the model's calls have been seen. */
  pieces: number;
  /** When it was stopped first. Null if it is not. */
  stoppedMs: number | null;
  /** When the agent heard that last. */
  cancelledMs: number;
  /** Why it is stopped, if no person did it. */
  bound: TurnError | null;
}

/** A server of tools, by HTTP. */
export interface ToolServer {
  readonly name: string;
  readonly url: string;
  /** As bearer. */
  readonly token: string;
}

export interface AcpAgentOptions {
  /** Absolute. */
  readonly workspace: string;
  readonly limits: TurnLimits;
  /** The model's calls, as far as they are seen. Absent: none is. */
  readonly gateway?: Pick<GatewayCalls, "begin" | "refused" | "isCalling" | "pieces" | "passed">;
  /** Null, as without it: the agent gets none. */
  readonly tools?: ToolServer | null;
  /** Whether every permission is given without a question, but while it plans. Absent: people are asked. */
  readonly allowsAll?: boolean;
  /** Absent: no mode plans. */
  readonly planMode?: string;
  /** The title of a request to carry out a plan that is in a file, up to the file. Absent: such requests say it themselves. */
  readonly planTitle?: string;
  /** Whether it is known where the agent keeps its record of a conversation. Absent: it is not. */
  readonly keepsRecord?: boolean;
}

export class AcpAgent {
  readonly conversation: AcpConversation;
  /** Open while somebody follows. */
  readonly #followed = Latch.makeUnsafe(false);
  readonly #options: AcpAgentOptions;
  #observers: Observers | null = null;
  #now: () => number = () => 0;
  #wire: AcpWire | null = null;
  /** The commands that the agent told last. Some tell them before the answer that opens the session. */
  #commands: readonly AvailableCommand[] = [];
  #session: OpenSession | null = null;
  #turn: Turn | null = null;
  /** Whether a process has got a message. */
  #wasUsed = false;
  /** The record of a former sandbox, and what became of it. Null if none came. */
  #recalled: { readonly record: BroughtHistory; state: "wanted" | "opened" | "refused" } | null = null;
  readonly #requests: AcpRequests;
  /** What the session costs so far, US dollars, and how much of it the turns before have told. */
  #cost = { all: 0, told: 0 };
  /** Told in the present turn. */
  #context: ContextUse | null = null;

  constructor(options: AcpAgentOptions) {
    this.#options = options;
    this.conversation = new AcpConversation(options.workspace, options.planTitle);
    this.#requests = new AcpRequests(this.conversation, () => {
      if (this.#turn !== null) this.#turn.toldMs = this.#now();
      this.#tellTurn();
    });
  }

  /** A process has started. */
  connect(pipes: Pipes): void {
    this.#lose();
    const wire: AcpWire = new AcpWire(pipes, {
      update: (sessionId, update) => this.#told(sessionId, update),
      permission: (request, cancellation) => this.#permission(request, cancellation),
      closed: () => this.#cut(wire),
    });
    this.#wire = wire;
  }

  get isBusy(): boolean {
    return this.#turn !== null;
  }

  /** Fails until the agent has introduced itself. */
  get probe(): Effect.Effect<void, HttpFailure> {
    return Effect.suspend(() =>
      this.#wire?.capabilities ? Effect.void : Effect.fail(silent("the agent has not introduced itself")),
    );
  }

  /** The session, once it is open. */
  get session(): Effect.Effect<OpenSession, HttpFailure> {
    return Effect.suspend(() =>
      this.#session === null || this.#session.wire.isClosed
        ? Effect.fail(silent("the agent has no open session"))
        : Effect.succeed(this.#session),
    );
  }

  /** The modes of its session. Empty: it has no session, or offers none. */
  get modes(): readonly string[] {
    return this.#session?.modes ?? [];
  }

  /** Completes when its process can no longer be spoken with. */
  get lost(): Effect.Effect<void> {
    return Effect.suspend(() => this.#wire?.whenClosed ?? Effect.never);
  }

  /** Completes when what the agent tells is followed. */
  get whenFollowed(): Effect.Effect<void> {
    return Effect.asVoid(this.#followed.await);
  }

  /** G2. May be repeated. */
  get open(): Effect.Effect<void, HttpFailure> {
    return Effect.gen({ self: this }, function* () {
      const wire = this.#wire;
      const capabilities = wire?.capabilities ?? null;
      if (wire === null || capabilities === null) return yield* silent("the agent has not introduced itself");
      const former = this.#session ?? this.#former;
      if (this.#session?.wire === wire) return;
      const again = former === null ? null : yield* this.#openAgain(wire, capabilities, former.id);
      const start = again ?? (yield* this.#openNew(wire, capabilities));
      if (this.#recalled?.state === "wanted") this.#recalled.state = again === null ? "refused" : "opened";
      const choices = new AcpChoices(start.answer);
      choices.commands(this.#commands);
      this.#session = {
        wire,
        capabilities,
        id: start.id,
        choices,
        // A session that goes on is in the mode that was chosen for it.
        modes: (again === null ? null : this.#session?.modes) ?? choices.modes,
        isInstructed: again !== null && former?.isInstructed === true,
        isPrompted: again === null,
      };
      if (again === null && this.#wasUsed) this.conversation.note(FORGOTTEN);
    }).pipe(
      Effect.timeoutOrElse({
        duration: OPEN_WITHIN,
        orElse: () => Effect.fail(silent("the agent did not open a session in time")),
      }),
    );
  }

  /** The agent's id of its session, once that has had a message. */
  get recorded(): string | null {
    return this.#session?.isInstructed === true ? this.#session.id : null;
  }

  /** Before the first session is opened: the agent has the record of this one again. */
  recall(record: BroughtHistory): void {
    this.#recalled = { record, state: "wanted" };
  }

  /** What became of the record of a former sandbox. */
  get recalled(): Restoring {
    if (this.#recalled === null)
      return { outcome: "failed", why: "missing", message: "no record of the agent came back" };
    const { record, state } = this.#recalled;
    if (state === "opened") return { outcome: "restored", until: record.at };
    return { outcome: "failed", why: "refused", message: "the agent did not open the session of its record" };
  }

  /** Reports what the agent tells, until its process is gone. */
  follow(observers: Observers): Effect.Effect<never, HttpFailure> {
    return Effect.gen({ self: this }, function* () {
      const wire = this.#wire;
      if (wire === null || wire.isClosed) return yield* silent("no agent runs");
      const clock = yield* Clock.Clock;
      this.#now = () => clock.currentTimeMillisUnsafe();
      this.#observers = observers;
      this.conversation.connected(observers.conversation, this.#now);
      this.#followed.openUnsafe();
      observers.turns.followed();
      observers.turns.turn(this.isBusy);
      this.#tellTurn();
      yield* Effect.raceFirst(wire.whenClosed, this.#watch);
      return yield* silent("the agent has closed the connection");
    }).pipe(Effect.ensuring(this.#followed.close));
  }

  /** Sends a prompt. Its turn ends by itself. */
  prompt(session: OpenSession, item: Sent, blocks: readonly ContentBlock[]): void {
    const turn: Turn = {
      session,
      calls: new ModelCalls(),
      sinceMs: this.#now(),
      toldMs: this.#now(),
      pieces: 0,
      stoppedMs: null,
      cancelledMs: Number.NEGATIVE_INFINITY,
      bound: null,
    };
    this.#turn = turn;
    this.#wasUsed = true;
    session.isPrompted = true;
    this.conversation.begin(item);
    this.#observers?.turns.turn(true);
    this.#tellTurn();
    this.#ask(turn, blocks);
  }

  /** Gives the agent a text of the turn. Its answer ends the turn, or goes on with it. */
  #ask(turn: Turn, blocks: readonly ContentBlock[]): void {
    const { wire, id: sessionId } = turn.session;
    this.#options.gateway?.begin();
    wire.request("session/prompt", { sessionId, prompt: blocks }).then(
      (answer) => this.#answered(turn, endOfAnswer(answer, this.#refusal, this.conversation.saying), answer),
      (error: unknown) => {
        const failure = wire.failure("session/prompt", error);
        // Without its process, the daemon ends the turn.
        if (failure instanceof AgentRefusal) this.#answered(turn, endOfRefusal(failure, this.#refusal), null);
      },
    );
  }

  /** A message that cannot be sent has its turn, which fails. */
  fail(item: Sent, error: TurnError): void {
    this.conversation.begin(item);
    this.#observers?.turns.turn(true);
    this.#end({ state: "failed", error }, { usage: null });
  }

  /** Ends the present turn. False: no turn is in progress. */
  get stop(): Effect.Effect<boolean, HttpFailure> {
    return Effect.suspend(() =>
      this.#turn === null ? Effect.succeed(false) : Effect.as(this.#stop(this.#turn), true),
    );
  }

  /** False: the request is closed, or takes no such answer. */
  answer(requestId: string, answer: RequestAnswer): boolean {
    const isAnswered = this.#requests.answer(requestId, answer);
    // It leaves the mode that plans by itself, and need not say which one follows.
    if (isAnswered && "approve" in answer) this.#session?.choices.left("mode");
    return isAnswered;
  }

  /** The words of rejections that it has not heard. */
  get untoldRejections(): string | null {
    return this.#requests.rejections.text;
  }

  /** It hears them with what it gets now. */
  rejectionsTold(): void {
    this.#requests.rejections.told();
  }

  /** The process of the present wire is gone, or another one has started. */
  #lose(): void {
    this.#turn = null;
    this.#requests.lose();
    this.conversation.lost();
  }

  /** The session of a former sandbox, which had the instructions. */
  get #former() {
    return this.#recalled?.state === "wanted" ? { id: this.#recalled.record.id, isInstructed: true } : null;
  }

  /** The session of the former process. Null if the agent cannot open it. */
  #openAgain(wire: AcpWire, capabilities: Capabilities, id: string) {
    const { sessionCapabilities, loadSession } = capabilities;
    const canResume = (sessionCapabilities?.resume ?? null) !== null;
    if (!canResume && loadSession !== true) return Effect.succeed(null);
    // A loaded session tells its whole history again. It is ignored, because the session is not open yet.
    return wire
      .call(canResume ? "session/resume" : "session/load", { sessionId: id, ...this.#place(capabilities) })
      .pipe(
        Effect.map((answer) => ({ id, answer })),
        Effect.catchTag("AgentRefusal", () => Effect.succeed(null)),
      );
  }

  #openNew(wire: AcpWire, capabilities: Capabilities) {
    return Effect.gen({ self: this }, function* () {
      const answer = yield* wire
        .call("session/new", this.#place(capabilities))
        .pipe(
          Effect.catchTag("AgentRefusal", ({ message }) =>
            Effect.fail(silent(`the agent refused to open a session: ${message}`)),
          ),
        );
      const opening = decodeBegun(answer);
      if (opening._tag === "None") return yield* silent("the agent opened a session without an id");
      return { id: opening.value.sessionId, answer };
    });
  }

  /** The protocol's agents need not take servers that are reached by HTTP. */
  #place({ mcpCapabilities }: Capabilities) {
    const { workspace: cwd, tools = null } = this.#options;
    if (tools === null || mcpCapabilities?.http !== true) return { cwd, mcpServers: [] };
    const { name, url, token } = tools;
    const headers = [{ name: "Authorization", value: `Bearer ${token}` }];
    return { cwd, mcpServers: [{ type: "http", name, url, headers }] };
  }

  #told(sessionId: string, update: SessionUpdate): void {
    const session = this.#session;
    if (update.sessionUpdate === "available_commands_update") {
      this.#commands = update.availableCommands;
      session?.choices.commands(this.#commands);
    }
    if (session === null || session.id !== sessionId || session.wire !== this.#wire) return;
    // The turn is over already (`#cut`).
    if (session.wire.isClosed) return;
    if (update.sessionUpdate === "config_option_update") session.choices.options(update.configOptions);
    if (update.sessionUpdate === "current_mode_update") session.choices.chosen("mode", update.currentModeId);
    if (update.sessionUpdate === "usage_update") {
      this.#cost.all = costIn(update) ?? this.#cost.all;
      this.#context = { tokens: update.used, size: update.size > 0 ? update.size : null };
    }
    // G3.
    if (!session.isPrompted) return;
    this.conversation.take(update);
    if (isOwnText(update)) this.#requests.rejections.dropOurs();
    const turn = this.#turn;
    if (turn === null) return;
    turn.toldMs = this.#now();
    this.#observers?.turns.activity();
    const { modelCalls } = this.#options.limits;
    if (turn.calls.take(update) > modelCalls) this.#bind(turn, tooManyCalls(modelCalls));
  }

  #permission(request: RequestPermissionRequest, cancellation: AbortSignal): Promise<string | null> {
    // The turn is over, or is being stopped. So the request cannot be answered.
    if (this.#turn === null || this.#turn.stoppedMs !== null) return Promise.resolve(null);
    const { allowsAll = false, planMode } = this.#options;
    const isPlanning = planMode !== undefined && this.#session?.choices.mode === planMode;
    if (allowsAll && !isPlanning && this.conversation.proposed(request) === null) {
      // Some agents tell a call for the first time when they ask for it.
      this.conversation.asked(request.toolCall);
      return Promise.resolve(permittingOption(request.options));
    }
    return this.#requests.ask(request, cancellation);
  }

  #tellTurn(): void {
    const waitingFor = this.#requests.first;
    this.#observers?.conversation.turn(
      this.#turn === null
        ? { state: "idle", waiting_for: null }
        : { state: waitingFor === null ? "running" : "requires_action", waiting_for: waitingFor },
    );
  }

  /** The last answer of the model's gateway, if it was no success. */
  get #refusal(): GatewayRefusal | null {
    return this.#options.gateway?.refused ?? null;
  }

  #bind(turn: Turn, why: TurnError): void {
    if (turn.bound !== null || turn.stoppedMs !== null) return;
    turn.bound = why;
    Effect.runFork(Effect.ignore(this.#stop(turn)));
  }

  #stop(turn: Turn): Effect.Effect<void, HttpFailure> {
    return Effect.suspend(() => {
      const { wire, id: sessionId } = turn.session;
      const now = this.#now();
      const isFirst = turn.stoppedMs === null;
      turn.stoppedMs ??= now;
      this.conversation.stopping();
      if (wire.isClosed || now - turn.cancelledMs < STOP_AGAIN_MS) return Effect.void;
      turn.cancelledMs = now;
      return Effect.tap(wire.tell("session/cancel", { sessionId }), () =>
        Effect.sync(() => {
          // The protocol asks for this after the notification.
          if (isFirst) this.#requests.cancelAll();
        }),
      );
    });
  }

  /** A turn that was being stopped ends with its process, and says so. It is open until there is another process: this one takes no message. */
  #cut(wire: AcpWire): void {
    const turn = this.#turn;
    if (turn === null || turn.session.wire !== wire || turn.stoppedMs === null) return;
    const state = turn.bound === null ? "interrupted" : "failed";
    const end: TurnEnd = { state, error: turn.bound ?? NOT_STOPPED, isOurs: true };
    this.conversation.end({ status: "interrupted", error: null }, this.#spent(null));
    this.#observers?.turns.ended(end);
    this.#observers?.turns.turn(false);
  }

  /** @param answer the agent's, to its prompt. Null without one */
  #spent(answer: unknown): Spent {
    const { all, told: before } = this.#cost;
    this.#cost = { all, told: all };
    const passedTokens = this.#options.gateway?.passed.sum ?? null;
    const usage = turnUsage(answer, { costUsd: Math.max(0, all - before), passed: passedTokens });
    const context = this.#context;
    this.#context = null;
    return { usage, ...(context !== null && { context }) };
  }

  #answered(turn: Turn, end: TurnEnd, answer: unknown): void {
    if (this.#turn !== turn) return;
    const usage = this.#spent(answer);
    if (turn.bound !== null) return this.#end({ state: "failed", error: turn.bound }, usage);
    // An agent may answer a turn that was stopped as if it had completed.
    if (turn.stoppedMs !== null) return this.#end(INTERRUPTED, usage);
    const words = this.#requests.rejections.text;
    if (words === null || end.state === "failed") return this.#end(end, usage);
    this.#requests.rejections.told();
    this.#requests.cancelAll();
    this.conversation.goOn({ status: end.state, error: null }, usage);
    turn.toldMs = this.#now();
    this.#ask(turn, [{ type: "text", text: words }]);
  }

  #end(end: TurnEnd, usage: Spent): void {
    this.#turn = null;
    this.#requests.rejections.dropOurs();
    this.#requests.cancelAll();
    this.conversation.end({ status: end.state, error: end.error }, usage);
    this.#observers?.turns.ended(end);
    this.#observers?.turns.turn(false);
    this.#tellTurn();
  }

  /** Stops a turn of which nothing is told any more, and ends a process that does not stop its turn. */
  get #watch(): Effect.Effect<never> {
    return Effect.forever(
      Effect.andThen(
        Effect.sleep(CHECK_EVERY),
        Effect.sync(() => {
          const [turn, { turnMs, stopMs }] = [this.#turn, this.#options.limits];
          if (turn === null) return;
          // The agent goes on as if it had heard nothing. It cannot be stopped in another way.
          if (turn.stoppedMs !== null && this.#now() - turn.stoppedMs >= stopMs)
            return turn.session.wire.close();
          if (this.#now() - turn.sinceMs > turnMs) this.#bind(turn, tooLong(turnMs));
          const refusal = this.#refusal;
          if (refusal !== null && isFinal(refusal)) this.#bind(turn, refusedBy(refusal));
          if (this.#requests.first !== null || this.conversation.isToolOpen) return;
          this.#checkSilence(turn);
        }),
      ),
    );
  }

  /** Where the model's calls are seen, a call that brings no byte counts. Elsewhere the agent may have its reasons for more patience. */
  #checkSilence(turn: Turn): void {
    const { silentMs, modelSilenceMs } = this.#options.limits;
    const { isCalling = false, pieces = 0 } = this.#options.gateway ?? {};
    if (turn.pieces !== pieces) turn.toldMs = this.#now();
    turn.pieces = pieces;
    const silence = this.#now() - turn.toldMs;
    if (isCalling && silence > modelSilenceMs) this.#bind(turn, silentModel(modelSilenceMs));
    else if (silence > silentMs) this.#bind(turn, toldNothing(silentMs));
  }
}

const FORGOTTEN =
  "The agent runtime restarted and could not continue its own session. The agent does not know what was said before.";
