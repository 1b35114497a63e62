/**
 * Follows opencode's turns by its events: which agent sessions are at work, how each turn ends, and when one has to be
 * ended because its model fails (TurnLimits).
 *
 *  T1 A turn has one end. opencode tells some errors twice, the second time after the turn.
 *  T2 Only turns of agent sessions that have no parent are told: a failing one of another agent's is that agent's to
 *     deal with. The limits hold for both.
 *  T3 A request is answered at once, because no person is there to answer it, in a way that lets the turn go on.
 */
import * as Schema from "effect/Schema";
import type { TurnError } from "../../src/domain/last-turn.ts";
import type { TurnLimits, TurnObserver } from "./adapter.ts";
import {
  isAbort,
  NO_ANSWER,
  RuntimeError,
  tooManyCalls,
  triedInVain,
  turnError,
  wordsOf,
} from "./opencode-errors.ts";

const optional = Schema.optionalKey;

/** Of an event only this is read. */
const RuntimeEvent = Schema.Struct({
  type: Schema.String,
  properties: optional(
    Schema.Struct({
      sessionID: optional(Schema.String),
      /** A request's. */
      id: optional(Schema.String),
      status: optional(
        Schema.Struct({
          type: Schema.String,
          attempt: optional(Schema.Finite),
          message: optional(Schema.String),
          /** When it tries again, ms since the epoch. */
          next: optional(Schema.Finite),
        }),
      ),
      error: optional(Schema.Unknown),
      questions: optional(Schema.Array(Schema.Unknown)),
      info: optional(
        Schema.Struct({
          id: optional(Schema.String),
          sessionID: optional(Schema.String),
          parentID: optional(Schema.String),
          role: optional(Schema.String),
          finish: optional(Schema.String),
          error: optional(Schema.Unknown),
        }),
      ),
    }),
  ),
});
export type RuntimeEvent = typeof RuntimeEvent.Type;
export const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(RuntimeEvent));
const decodeError = Schema.decodeUnknownOption(RuntimeError);

/** A request that the agent waits for. */
export interface AgentRequest {
  readonly kind: "question" | "permission";
  readonly id: string;
  /** Questions in it. */
  readonly count: number;
}

/** What is to be done to the runtime. */
export interface TurnActions {
  readonly abort: (sessionId: string) => void;
  readonly answer: (request: AgentRequest) => void;
}

interface Turn {
  /** Ids of the model's messages, one a call. */
  readonly calls: Set<string>;
  /** Since when the current call is tried, ms since the epoch. */
  callSince: number;
  /** The runtime waits to try again. */
  retrying: boolean;
  error: RuntimeError | null;
  /** Why it is being ended. */
  bound: TurnError | null;
  /** Seen from its beginning. */
  readonly whole: boolean;
}

/** Within this time after a turn the same words are the same error told again (T1), ms. */
const ECHO_MS = 1000;

export class OpencodeTurns {
  readonly #turns = new Map<string, Turn>();
  /** Sessions of which the stream has told whether they are at work: newer than the answer to the question. */
  readonly #told = new Set<string>();
  readonly #children = new Set<string>();
  readonly #failed = new Map<string, { readonly words: string; readonly atMs: number }>();
  readonly #limits: TurnLimits;
  readonly #observer: TurnObserver;
  readonly #actions: TurnActions;

  constructor(limits: TurnLimits, observer: TurnObserver, actions: TurnActions) {
    this.#limits = limits;
    this.#observer = observer;
    this.#actions = actions;
  }

  /** What the runtime was at work on when the stream began. */
  already(sessions: readonly string[], atMs: number): void {
    for (const id of sessions) if (!this.#told.has(id)) this.#begin(id, atMs, false);
    this.#observer.turn(this.#turns.size > 0);
    if (sessions.length > 0) this.#observer.activity();
  }

  take(event: RuntimeEvent, atMs: number): void {
    this.#request(event);
    if (!event.type.startsWith("session.") && !event.type.startsWith("message.")) return;
    const { info } = event.properties ?? {};
    const id = event.properties?.sessionID ?? info?.sessionID;
    if (id !== undefined) this.#note(id, event, atMs);
    this.#observer.turn(this.#turns.size > 0);
    this.#observer.activity();
  }

  #note(id: string, { type, properties }: RuntimeEvent, atMs: number): void {
    const { info, status } = properties ?? {};
    if ((type === "session.created" || type === "session.updated") && info?.parentID !== undefined)
      this.#children.add(id);
    if (type === "message.updated" && info !== undefined) this.#message(id, info, atMs);
    if (type === "session.error") this.#error(id, properties?.error, atMs);
    if (type === "session.idle" || type === "session.deleted") this.#end(id, atMs);
    if (type !== "session.status" || status === undefined) return;
    if (status.type === "idle") return this.#end(id, atMs);
    const turn = this.#begin(id, atMs, true);
    turn.retrying = status.type === "retry";
    if (status.type === "retry") this.#tried(id, turn, { ...status, atMs });
  }

  #begin(id: string, atMs: number, whole: boolean): Turn {
    this.#told.add(id);
    const known = this.#turns.get(id);
    if (known !== undefined) return known;
    const turn: Turn = {
      calls: new Set(),
      callSince: atMs,
      retrying: false,
      error: null,
      bound: null,
      whole,
    };
    this.#turns.set(id, turn);
    return turn;
  }

  #message(
    id: string,
    info: NonNullable<NonNullable<RuntimeEvent["properties"]>["info"]>,
    atMs: number,
  ): void {
    const turn = this.#turns.get(id);
    if (turn === undefined || info.role !== "assistant" || info.id === undefined) return;
    turn.calls.add(info.id);
    if (info.finish !== undefined) turn.callSince = atMs;
    if (turn.calls.size > this.#limits.modelCalls)
      this.#stop(id, turn, tooManyCalls(this.#limits.modelCalls));
  }

  #tried(
    id: string,
    turn: Turn,
    status: {
      readonly attempt?: number;
      readonly message?: string;
      readonly next?: number;
      readonly atMs: number;
    },
  ): void {
    const { tries, tryingMs } = this.#limits;
    const { attempt = 0, message = "", next = 0, atMs } = status;
    // One that would try again too late is ended now: waiting changes nothing.
    const isOver = attempt >= tries || Math.max(next, atMs) - turn.callSince > tryingMs;
    if (isOver) this.#stop(id, turn, triedInVain(message));
  }

  #stop(id: string, turn: Turn, why: TurnError): void {
    if (turn.bound !== null) return;
    turn.bound = why;
    this.#actions.abort(id);
  }

  #error(id: string, told: unknown, atMs: number): void {
    const error = decodeError(told);
    if (error._tag === "None") return;
    const turn = this.#turns.get(id);
    if (turn !== undefined) {
      turn.error ??= error.value;
      return;
    }
    const words = wordsOf(error.value);
    const former = this.#failed.get(id);
    if (former?.words === words && atMs - former.atMs < ECHO_MS) return;
    // Not even begun, e.g. because there is no provider at all.
    this.#told.add(id);
    this.#fail(id, error.value, atMs);
  }

  #end(id: string, atMs: number): void {
    this.#told.add(id);
    const turn = this.#turns.get(id);
    if (turn === undefined) return;
    this.#turns.delete(id);
    if (turn.bound !== null) return this.#tell(id, "failed", turn.bound);
    if (turn.error !== null && !isAbort(turn.error)) return this.#fail(id, turn.error, atMs);
    // opencode says nothing of an abort that came while it waited to try again.
    if (turn.error !== null || turn.retrying) return this.#tell(id, "interrupted", null);
    if (turn.whole && turn.calls.size === 0) return this.#tell(id, "failed", NO_ANSWER);
    this.#tell(id, "completed", null);
  }

  #fail(id: string, error: RuntimeError, atMs: number): void {
    this.#failed.set(id, { words: wordsOf(error), atMs });
    this.#tell(id, "failed", turnError(error));
  }

  #tell(id: string, state: Parameters<TurnObserver["ended"]>[0]["state"], error: TurnError | null): void {
    if (!this.#children.has(id)) this.#observer.ended({ state, error });
  }

  #request({ type, properties }: RuntimeEvent): void {
    const kind = type === "question.asked" ? "question" : type === "permission.asked" ? "permission" : null;
    const id = properties?.id;
    if (kind !== null && id !== undefined)
      this.#actions.answer({ kind, id, count: properties?.questions?.length ?? 0 });
  }
}
