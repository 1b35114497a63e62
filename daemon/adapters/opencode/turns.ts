/**
 * Follows opencode's turns by its events: which agent sessions are at work, how each turn ends, and when a turn must be
 * ended because its model fails (TurnLimits).
 *
 *  T1 A turn has one end. opencode reports some errors twice, the second time after the turn.
 *  T2 Only turns of agent sessions without a parent are reported: the parent agent handles the failure of a subagent's
 *     turn. The limits apply to both.
 *  T3 A turn ends as its last call of the model ended. opencode repairs some errors: a conversation that is too long for the
 *     model becomes a summary, and the model is asked again. An answer that comes whole while the turn is being ended is its end.
 *  T4 A turn also ends by time, which a clock beside the events tells: the model is silent or is not called, or the turn takes too
 *     long. While a tool runs, the model need not say anything. opencode does not report the arguments of a tool while they come.
 */
import type { TurnEnd } from "../../report.ts";
import * as Schema from "effect/Schema";
import type { TurnError } from "../../../src/domain/session/last-turn.ts";
import type { TurnLimits, TurnObserver } from "../adapter.ts";
import {
  decodeError,
  callsInVain,
  isAbort,
  errorOfFinish,
  NO_ANSWER,
  notAsked,
  type RuntimeError,
  silentModel,
  tooLong,
  tooManyCalls,
  triedInVain,
  turnError,
  providerWords,
} from "../turn-errors.ts";
import { type CallInfo, type CallPart, ModelProgress } from "./progress.ts";

const optional = Schema.optionalKey;

/** The part of an event that is read. */
const RuntimeEvent = Schema.Struct({
  type: Schema.String,
  properties: optional(
    Schema.Struct({
      sessionID: optional(Schema.String),
      status: optional(
        Schema.Struct({
          type: Schema.String,
          attempt: optional(Schema.Finite),
          message: optional(Schema.String),
          /** The time of the next attempt, ms since the epoch. */
          next: optional(Schema.Finite),
        }),
      ),
      error: optional(Schema.Unknown),
      messageID: optional(Schema.String),
      info: optional(
        Schema.Struct({
          id: optional(Schema.String),
          sessionID: optional(Schema.String),
          parentID: optional(Schema.String),
          role: optional(Schema.String),
          finish: optional(Schema.String),
          error: optional(Schema.Unknown),
          summary: optional(Schema.Unknown),
          time: optional(Schema.Struct({ completed: optional(Schema.Finite) })),
        }),
      ),
      part: optional(
        Schema.Struct({
          id: Schema.String,
          messageID: Schema.String,
          sessionID: optional(Schema.String),
          type: Schema.String,
          text: optional(Schema.String),
          tool: optional(Schema.String),
          state: optional(Schema.Struct({ status: Schema.String })),
        }),
      ),
    }),
  ),
});
export type RuntimeEvent = typeof RuntimeEvent.Type;
export const decodeEvent = Schema.decodeUnknownOption(RuntimeEvent);

/** A call of the model that failed. The runtime repeats it. */
export interface Retry {
  readonly sessionId: string;
  /** When its first attempt began, ms since the epoch. It tells the calls of a session apart. */
  readonly callSince: number;
  /** How many attempts have failed. */
  readonly attempt: number;
  /** The provider's message. */
  readonly message: string;
}

/** Calls to the runtime, and what is told beside the turns. */
export interface TurnActions {
  readonly abort: (sessionId: string) => void;
  readonly retried: (retry: Retry) => void;
  /** A session's turn has an error, or could not begin because of it. */
  readonly failed: (sessionId: string, error: RuntimeError) => void;
  /** Whether a person has ended the session's turn, which ends now. Asked once for each end. */
  readonly wasStopped: (sessionId: string) => boolean;
  /** When the provider that refused last takes requests again, in words. Null if that is not known. */
  readonly again: () => string | null;
}

interface Turn {
  /** When it began, ms since the epoch. */
  readonly sinceMs: number;
  readonly progress: ModelProgress;
  /** When the first attempt at the current call began, ms since the epoch. */
  callSince: number;
  /** The runtime waits for its next attempt. */
  retrying: boolean;
  /** T3. The last error that was not repaired. */
  error: RuntimeError | null;
  /** Why it is being ended. */
  bound: TurnError | null;
  /** T3. The last call has ended, with a whole answer that asks for no tool. */
  isAnswered: boolean;
  /** Whether it was followed from its beginning. */
  readonly whole: boolean;
}

/** How a call of the model ends that wants a tool, by the names of opencode's library. */
const ASKS_FOR_TOOLS = "tool-calls";

const COMPLETED: TurnEnd = { state: "completed", error: null };
const INTERRUPTED: TurnEnd = { state: "interrupted", error: null };

/** Within this time after a turn, the same message is the same error, reported again (T1), ms. */
const ECHO_MS = 1000;

/** A session that was at work before the stream began. */
export interface AtWork {
  readonly id: string;
  /** Its newest message. */
  readonly newest: {
    readonly info: CallInfo & { readonly role: string };
    readonly parts: readonly CallPart[];
  } | null;
}

export class OpencodeTurns {
  readonly #turns = new Map<string, Turn>();
  /** Sessions whose state the stream has already reported. It is newer than the answer to the query. */
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

  /** Records the runtime's turns from before the stream began. */
  already(sessions: readonly AtWork[], atMs: number): void {
    for (const { id, newest } of sessions) {
      if (this.#told.has(id)) continue;
      const { progress } = this.#begin(id, atMs, false);
      if (newest?.info.role !== "assistant") continue;
      progress.message(newest.info, atMs);
      for (const part of newest.parts) progress.part(part, atMs);
    }
    this.#observer.turn(this.#turns.size > 0);
    if (sessions.length > 0) this.#observer.activity();
  }

  /** T4. Called again and again. */
  check(atMs: number): void {
    for (const [id, turn] of this.#turns) {
      const { turnMs } = this.#limits;
      const silence = turn.retrying ? null : turn.progress.passedSilence(atMs, this.#limits);
      if (atMs - turn.sinceMs > turnMs) this.#stop(id, turn, tooLong(turnMs));
      else if (silence !== null)
        this.#stop(id, turn, turn.whole && !turn.progress.isAsked ? notAsked(silence) : silentModel(silence));
    }
  }

  take(event: RuntimeEvent, atMs: number): void {
    if (!event.type.startsWith("session.") && !event.type.startsWith("message.")) return;
    const { info } = event.properties ?? {};
    const id = event.properties?.sessionID ?? info?.sessionID ?? event.properties?.part?.sessionID;
    if (id !== undefined) this.#note(id, event, atMs);
    this.#observer.turn(this.#turns.size > 0);
    this.#observer.activity();
  }

  #note(id: string, { type, properties }: RuntimeEvent, atMs: number): void {
    const { info, part, status } = properties ?? {};
    if (part !== undefined) this.#turns.get(id)?.progress.part(part, atMs);
    if (type === "message.part.delta") this.#turns.get(id)?.progress.delta(properties?.messageID ?? "", atMs);
    if ((type === "session.created" || type === "session.updated") && info?.parentID !== undefined)
      this.#children.add(id);
    if (type === "message.updated" && info !== undefined) this.#message(id, info, atMs);
    if (type === "session.error") this.#error(id, properties?.error, atMs);
    if (type === "session.idle" || type === "session.deleted") this.#end(id, atMs);
    if (type !== "session.status" || status === undefined) return;
    if (status.type === "idle") return this.#end(id, atMs);
    const turn = this.#begin(id, atMs, true);
    turn.retrying = status.type === "retry";
    if (!turn.retrying) turn.progress.beginAttempt(atMs);
    if (status.type === "retry") this.#tried(id, turn, { ...status, atMs });
  }

  #begin(id: string, atMs: number, whole: boolean): Turn {
    this.#told.add(id);
    const former = this.#turns.get(id);
    if (former !== undefined) return former;
    const turn: Turn = {
      sinceMs: atMs,
      progress: new ModelProgress(atMs),
      callSince: atMs,
      retrying: false,
      error: null,
      bound: null,
      isAnswered: false,
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
    // opencode reports some messages again after their end.
    const isNews = !turn.progress.isOver(info.id);
    turn.progress.message(info, atMs);
    if (info.finish !== undefined) turn.callSince = atMs;
    // T3. A summary repairs nothing yet: the call after it does.
    if (isNews) turn.isAnswered = false;
    if (info.finish !== undefined && info.error === undefined && info.summary !== true) {
      turn.error = errorOfFinish(info.finish) ?? null;
      if (isNews) turn.isAnswered = turn.error === null && info.finish !== ASKS_FOR_TOOLS;
    }
    const { modelCalls, idleCalls } = this.#limits;
    if (turn.progress.calls > modelCalls) this.#stop(id, turn, tooManyCalls(modelCalls));
    if (turn.progress.idleCalls >= idleCalls) this.#stop(id, turn, callsInVain(idleCalls));
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
    // If the next attempt comes too late, the turn is ended now: waiting changes nothing.
    const isOver = attempt >= tries || Math.max(next, atMs) - turn.callSince > tryingMs;
    if (isOver) return this.#stop(id, turn, triedInVain(message, this.#actions.again()));
    this.#actions.retried({ sessionId: id, callSince: turn.callSince, attempt, message });
  }

  #stop(id: string, turn: Turn, why: TurnError): void {
    if (turn.bound !== null) return;
    turn.bound = why;
    turn.isAnswered = false;
    this.#actions.abort(id);
  }

  #error(id: string, value: unknown, atMs: number): void {
    const error = decodeError(value);
    if (error._tag === "None") return;
    this.#actions.failed(id, error.value);
    const turn = this.#turns.get(id);
    if (turn !== undefined) {
      turn.error = error.value;
      return;
    }
    const words = providerWords(error.value);
    const former = this.#failed.get(id);
    if (former?.words === words && atMs - former.atMs < ECHO_MS) return;
    // The turn did not begin, e.g. because there is no provider at all.
    this.#told.add(id);
    this.#fail(id, error.value, atMs);
  }

  #end(id: string, atMs: number): void {
    this.#told.add(id);
    const turn = this.#turns.get(id);
    if (turn === undefined) return;
    this.#turns.delete(id);
    const wasStopped = this.#actions.wasStopped(id);
    if (turn.bound !== null) {
      const { bound, isAnswered } = turn;
      return this.#tell(id, isAnswered ? COMPLETED : { state: "failed", error: bound, isOurs: true });
    }
    if (turn.error !== null && !isAbort(turn.error)) return this.#fail(id, turn.error, atMs);
    // opencode reports nothing about an abort that came while it waited for its next attempt.
    if (turn.error !== null || turn.retrying) return this.#tell(id, INTERRUPTED);
    // Nor about one that came before the model was called.
    if (wasStopped) return this.#tell(id, INTERRUPTED);
    if (turn.whole && turn.progress.calls === 0)
      return this.#tell(id, { state: "failed", error: NO_ANSWER, isOurs: true });
    this.#tell(id, COMPLETED);
  }

  #fail(id: string, error: RuntimeError, atMs: number): void {
    this.#failed.set(id, { words: providerWords(error), atMs });
    this.#tell(id, { state: "failed", error: turnError(error, this.#actions.again()) });
  }

  #tell(id: string, end: TurnEnd): void {
    if (!this.#children.has(id)) this.#observer.ended(end);
  }
}
