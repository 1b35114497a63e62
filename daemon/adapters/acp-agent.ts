/**
 * One agent that speaks the Agent Client Protocol, over all its processes: its session, its turns and its requests.
 *
 *  G1 At most one prompt is in progress. A message is handed over once: what this adapter has sent counts as taken, because
 *     its process has it, or is gone with its turn.
 *  G2 Each process opens one session. If the agent can, it is the session of the process before.
 *  G3 A request is answered once: by a person, or as cancelled when its turn ends.
 */
import type {
  ContentBlock,
  PermissionOption,
  RequestPermissionRequest,
  SessionUpdate,
} from "@agentclientprotocol/sdk";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Schema from "effect/Schema";
import type { TurnError } from "../../src/domain/last-turn.ts";
import type { RequestAnswer } from "../../src/domain/steering.ts";
import type { HttpFailure } from "../http-client.ts";
import type { Pipes } from "../process.ts";
import { AcpChoices } from "./acp-choices.ts";
import { AcpConversation, type Sent } from "./acp-conversation.ts";
import { endOf, endOfRefusal, INTERRUPTED, ModelCalls, toldNothing, usageOf } from "./acp-turns.ts";
import { AcpWire, AgentRefusal, silent, type Capabilities } from "./acp-wire.ts";
import type { Observers, TurnEnd, TurnLimits } from "./adapter.ts";
import { tooLong, tooManyCalls } from "./opencode-errors.ts";

/** How long an agent may take to open a session. Then it is asked again. */
const OPEN_WITHIN = "60 seconds";
/** How long an agent may take to end a turn that is stopped. Then its process is ended. */
const STOP_WITHIN_MS = 30_000;
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
}

interface Turn {
  readonly session: OpenSession;
  readonly calls: ModelCalls;
  readonly sinceMs: number;
  /** When the agent told something last, ms since the epoch. */
  toldMs: number;
  /** When it was stopped first. Null: it is not. */
  stoppedMs: number | null;
  /** When the agent heard that last. */
  cancelledMs: number;
  /** Why it is stopped, if no person did it. */
  bound: TurnError | null;
}

interface Asked {
  readonly options: readonly PermissionOption[];
  /** Gives the agent its answer. Null: cancelled. */
  readonly choose: (optionId: string | null) => void;
}

export interface AcpAgentOptions {
  /** Absolute. */
  readonly workspace: string;
  readonly limits: TurnLimits;
}

export class AcpAgent {
  readonly conversation: AcpConversation;
  /** Open while somebody follows. */
  readonly #followed = Latch.makeUnsafe(false);
  readonly #options: AcpAgentOptions;
  #observers: Observers | null = null;
  #now: () => number = () => 0;
  #wire: AcpWire | null = null;
  #session: OpenSession | null = null;
  #turn: Turn | null = null;
  /** Whether a process has got a message. */
  #wasUsed = false;
  readonly #asked = new Map<string, Asked>();
  /** What the session costs so far, US dollars, and how much of it the turns before have told. */
  #cost = { all: 0, told: 0 };

  constructor(options: AcpAgentOptions) {
    this.#options = options;
    this.conversation = new AcpConversation(options.workspace);
  }

  /** A process has started. */
  connect(pipes: Pipes): void {
    this.#lose();
    this.#wire = new AcpWire(pipes, {
      update: (sessionId, update) => this.#told(sessionId, update),
      permission: (request, cancelled) => this.#permission(request, cancelled),
    });
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
      const former = this.#session;
      if (former?.wire === wire) return;
      const again = former === null ? null : yield* this.#openAgain(wire, capabilities, former.id);
      const begun = again ?? (yield* this.#openNew(wire));
      this.#session = { wire, capabilities, id: begun.id, choices: new AcpChoices(begun.answer) };
      if (again === null && this.#wasUsed) this.conversation.note(FORGOTTEN);
    }).pipe(
      Effect.timeoutOrElse({
        duration: OPEN_WITHIN,
        orElse: () => Effect.fail(silent("the agent did not open a session in time")),
      }),
    );
  }

  /** Reports what the agent tells, until its process is gone. */
  follow(observers: Observers): Effect.Effect<never, HttpFailure> {
    return Effect.gen({ self: this }, function* () {
      const wire = this.#wire;
      if (wire === null) return yield* silent("no agent runs");
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
  prompt(session: OpenSession, sent: Sent, blocks: readonly ContentBlock[]): void {
    const { wire, id: sessionId } = session;
    const turn: Turn = {
      session,
      calls: new ModelCalls(),
      sinceMs: this.#now(),
      toldMs: this.#now(),
      stoppedMs: null,
      cancelledMs: Number.NEGATIVE_INFINITY,
      bound: null,
    };
    this.#turn = turn;
    this.#wasUsed = true;
    this.conversation.begin(sent);
    this.#observers?.turns.turn(true);
    this.#tellTurn();
    wire.request("session/prompt", { sessionId, prompt: blocks }).then(
      (answer) => this.#answered(turn, endOf(answer), answer),
      (error: unknown) => {
        const failure = wire.failure("session/prompt", error);
        // Without its process, the daemon ends the turn.
        if (failure instanceof AgentRefusal) this.#answered(turn, endOfRefusal(failure), null);
      },
    );
  }

  /** A message that cannot be sent has its turn, which fails. */
  fail(sent: Sent, error: TurnError): void {
    this.conversation.begin(sent);
    this.#observers?.turns.turn(true);
    this.#end({ state: "failed", error }, null);
  }

  /** Ends the present turn. False: no turn is in progress. */
  get stop(): Effect.Effect<boolean, HttpFailure> {
    return Effect.suspend(() =>
      this.#turn === null ? Effect.succeed(false) : Effect.as(this.#stop(this.#turn), true),
    );
  }

  /** False: the request is closed, or takes no such answer. */
  answer(requestId: string, answer: RequestAnswer): boolean {
    const asked = this.#asked.get(requestId);
    if (asked === undefined || "answers" in answer) return false;
    const choice = "choice" in answer ? answer.choice : "reject";
    const option = optionFor(asked.options, choice);
    if (option === null && choice !== "reject") return false;
    this.#settle(requestId, { optionId: option?.optionId ?? null, status: "completed", answer: choice });
    return true;
  }

  /** The process of the present wire is gone, or another one has started. */
  #lose(): void {
    this.#turn = null;
    for (const { choose } of this.#asked.values()) choose(null);
    this.#asked.clear();
    this.conversation.lost();
  }

  /** The session of the former process. Null: the agent cannot open it. */
  #openAgain(wire: AcpWire, { sessionCapabilities, loadSession }: Capabilities, id: string) {
    const canResume = (sessionCapabilities?.resume ?? null) !== null;
    if (!canResume && loadSession !== true) return Effect.succeed(null);
    // A loaded session tells its whole history again. It is ignored, because the session is not open yet.
    return wire.call(canResume ? "session/resume" : "session/load", { sessionId: id, ...this.#place }).pipe(
      Effect.map((answer) => ({ id, answer })),
      Effect.catchTag("AgentRefusal", () => Effect.succeed(null)),
    );
  }

  #openNew(wire: AcpWire) {
    return Effect.gen({ self: this }, function* () {
      const answer = yield* wire
        .call("session/new", this.#place)
        .pipe(
          Effect.catchTag("AgentRefusal", ({ message }) =>
            Effect.fail(silent(`the agent refused to open a session: ${message}`)),
          ),
        );
      const begun = decodeBegun(answer);
      if (begun._tag === "None") return yield* silent("the agent opened a session without an id");
      return { id: begun.value.sessionId, answer };
    });
  }

  get #place() {
    return { cwd: this.#options.workspace, mcpServers: [] };
  }

  #told(sessionId: string, update: SessionUpdate): void {
    const session = this.#session;
    if (session === null || session.id !== sessionId || session.wire !== this.#wire) return;
    if (update.sessionUpdate === "config_option_update") session.choices.options(update.configOptions);
    if (update.sessionUpdate === "current_mode_update") session.choices.chosen("mode", update.currentModeId);
    if (update.sessionUpdate === "usage_update") this.#cost.all = costIn(update) ?? this.#cost.all;
    this.conversation.take(update);
    const turn = this.#turn;
    if (turn === null) return;
    turn.toldMs = this.#now();
    this.#observers?.turns.activity();
    const { modelCalls } = this.#options.limits;
    if (turn.calls.take(update) > modelCalls) this.#bind(turn, tooManyCalls(modelCalls));
  }

  #permission(request: RequestPermissionRequest, cancelled: AbortSignal): Promise<string | null> {
    // The turn is over, or is being stopped. So the request cannot be answered.
    if (this.#turn === null || this.#turn.stoppedMs !== null) return Promise.resolve(null);
    const id = this.conversation.ask(request);
    const { promise, resolve } = Promise.withResolvers<string | null>();
    this.#asked.set(id, { options: request.options, choose: resolve });
    cancelled.addEventListener("abort", () => this.#cancelled(id), { once: true });
    this.#tellTurn();
    return promise;
  }

  #cancelled(id: string): void {
    this.#settle(id, { optionId: null, status: "interrupted", answer: "" });
  }

  /** G3. */
  #settle(
    id: string,
    {
      optionId,
      status,
      answer,
    }: {
      readonly optionId: string | null;
      readonly status: "completed" | "interrupted";
      readonly answer: string;
    },
  ): void {
    const asked = this.#asked.get(id);
    if (asked === undefined) return;
    this.#asked.delete(id);
    this.conversation.settle(id, status, answer);
    if (this.#turn !== null) this.#turn.toldMs = this.#now();
    this.#tellTurn();
    asked.choose(optionId);
  }

  #tellTurn(): void {
    const [waitingFor = null] = this.#asked.keys();
    this.#observers?.conversation.turn(
      this.#turn === null
        ? { state: "idle", waiting_for: null }
        : { state: waitingFor === null ? "running" : "requires_action", waiting_for: waitingFor },
    );
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
      // The agent goes on as if it had heard nothing. It cannot be stopped in another way.
      if (now - turn.stoppedMs > STOP_WITHIN_MS) wire.close();
      if (now - turn.cancelledMs < STOP_AGAIN_MS) return Effect.void;
      turn.cancelledMs = now;
      return Effect.tap(wire.tell("session/cancel", { sessionId }), () =>
        Effect.sync(() => {
          // The protocol asks for this after the notification.
          if (isFirst) for (const id of this.#asked.keys()) this.#cancelled(id);
        }),
      );
    });
  }

  #answered(turn: Turn, told: TurnEnd, answer: unknown): void {
    if (this.#turn !== turn) return;
    const { all, told: before } = this.#cost;
    this.#cost = { all, told: all };
    const usage = usageOf(answer, Math.max(0, all - before));
    if (turn.bound !== null) this.#end({ state: "failed", error: turn.bound }, usage);
    // An agent may answer a turn that was stopped as if it had completed.
    else this.#end(turn.stoppedMs === null ? told : INTERRUPTED, usage);
  }

  #end(end: TurnEnd, usage: ReturnType<typeof usageOf>): void {
    this.#turn = null;
    for (const id of this.#asked.keys()) this.#cancelled(id);
    this.conversation.end({ status: end.state, error: end.error }, usage);
    this.#observers?.turns.ended(end);
    this.#observers?.turns.turn(false);
    this.#tellTurn();
  }

  /** Stops a turn of which nothing is told any more. */
  get #watch(): Effect.Effect<never> {
    return Effect.forever(
      Effect.andThen(
        Effect.sleep(CHECK_EVERY),
        Effect.sync(() => {
          const [turn, { silentMs, turnMs }] = [this.#turn, this.#options.limits];
          if (turn !== null && this.#now() - turn.sinceMs > turnMs) this.#bind(turn, tooLong(turnMs));
          if (turn === null || this.#asked.size > 0 || this.conversation.isToolOpen) return;
          if (this.#now() - turn.toldMs > silentMs) this.#bind(turn, toldNothing(silentMs));
        }),
      ),
    );
  }
}

const FORGOTTEN =
  "The agent runtime restarted and could not continue its own session. The agent does not know what was said before.";

const KINDS: Readonly<Record<"once" | "always" | "reject", readonly string[]>> = {
  once: ["allow_once"],
  // The agent asks again, but does what the person permits.
  always: ["allow_always", "allow_once"],
  reject: ["reject_once", "reject_always"],
};

/** The agent's option for this choice. Null: it has none. */
const optionFor = (
  options: readonly PermissionOption[],
  choice: keyof typeof KINDS,
): PermissionOption | null =>
  KINDS[choice].flatMap((kind) => options.find((option) => option.kind === kind) ?? [])[0] ?? null;

/** The session's cost so far, US dollars. Null: not told, or in another currency. */
const costIn = ({ cost }: { readonly cost?: { amount: number; currency: string } | null }): number | null =>
  cost?.currency === "USD" ? cost.amount : null;
