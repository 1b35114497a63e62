/**
 * One agent runtime. Its talk is a list of versions, each with its number and the instant from which it is said. The list
 * has the rest of the turn already; an interrupt removes that.
 */
import * as Effect from "effect/Effect";
import type { ItemError, NativeItem } from "../../../src/domain/conversation/conversation.ts";
import type { MessageHandedOver, OutgoingMessage } from "../../../src/domain/conversation/steering.ts";
import type { Random } from "../random.ts";
import { madeIn, versionOf, type Said } from "./talks.ts";
import type { SimulatedTime } from "../time.ts";

/** The longest first turn, ms: so short that a run of few steps sees later turns. */
const FIRST_TURN_MAX_MS = 1_500;
const BEGINS_AT_WORK = 0.6;
const TURN_MIN_MS = 150;
const TURN_MAX_MS = 4_000;
/** The share of turns that go on until a person ends them, or nearly so, and how long they last, ms. */
const LONG = 0.08;
const LONG_MIN_MS = 40_000;
const LONG_MAX_MS = 80_000;
/** In calm, so that all that waits is done within a bounded time. */
const CALM_TURN_MAX_MS = 600;
/** The share of turns after which it goes on by itself, and how soon, ms. */
const GOES_ON = 0.3;
const GOES_ON_AFTER_MAX_MS = 300;
/** The share of turns in which the agent asks. */
const ASKS = 0.3;

export interface OpenTurn {
  readonly number: number;
  readonly messageId: string | null;
  /** ms of `elapsed`. */
  readonly since: number;
}

export interface RuntimeParts {
  readonly id: string;
  readonly time: SimulatedTime;
  readonly random: Random;
  /** ms of `elapsed`. */
  readonly beginsAt: number;
}

type State = Pick<Said, "isWorking" | "waitingFor" | "ended">;

export class Runtime {
  readonly said: Said[] = [];
  /** The turns of messages that it has. */
  readonly accepted = new Map<string, number>();
  readonly refused = new Map<string, ItemError>();
  readonly #parts: RuntimeParts;
  readonly #readers = new Set<() => void>();
  /** Those that have begun, and the one that it will begin by itself. */
  #turns: readonly OpenTurn[] = [];
  #isCalm = false;
  #answeredAt = 0;

  constructor(parts: RuntimeParts) {
    this.#parts = parts;
    const { random, beginsAt } = parts;
    if (!random.chance(BEGINS_AT_WORK)) return;
    this.#begin(null, beginsAt);
    const at = beginsAt + random.between(TURN_MIN_MS, FIRST_TURN_MAX_MS);
    if (random.chance(ASKS)) this.#ask(at);
    else this.#finish(at);
  }

  /** From now on it works quickly, and asks nothing. */
  calm(): void {
    this.#isCalm = true;
  }

  /** The versions until now. */
  get present(): readonly Said[] {
    return this.said.filter(({ at }) => at <= this.#parts.time.elapsed);
  }

  get #state(): State {
    return this.present.at(-1) ?? { isWorking: false, waitingFor: null, ended: 0 };
  }

  get open(): OpenTurn | null {
    const last = this.#turns.findLast(({ since }) => since <= this.#parts.time.elapsed) ?? null;
    return last !== null && this.#state.ended < last.number ? last : null;
  }

  /** The open request. */
  get waitsFor(): NativeItem | null {
    const { waitingFor } = this.#state;
    if (waitingFor === null) return null;
    return this.present.findLast(({ item }) => item?.native_id === waitingFor)?.item ?? null;
  }

  /** Since when it works without a pause, ms of `elapsed`: from the turn's begin, or from the answer to its last request. Null: it does not. */
  get worksSince(): number | null {
    const { open } = this;
    return open === null || this.waitsFor !== null ? null : Math.max(open.since, this.#answeredAt);
  }

  /** Since when it has been at rest, ms of `elapsed`. Null: it is not. */
  get restsSince(): number | null {
    return this.open === null ? (this.present.at(-1)?.at ?? this.#parts.beginsAt) : null;
  }

  /** When its turn will end by itself, ms of `elapsed`. A turn that waits for an answer does not. */
  get endsAt(): number {
    const { open } = this;
    return this.said.find(({ ended }) => ended === open?.number)?.at ?? Infinity;
  }

  takes(messageId: string): boolean {
    return this.open === null && !this.accepted.has(messageId);
  }

  refuse(messageId: string, error: ItemError): MessageHandedOver {
    this.refused.set(messageId, error);
    return { outcome: "refused", error };
  }

  hand(message: OutgoingMessage): MessageHandedOver {
    const error = this.refused.get(message.id);
    if (error !== undefined) return { outcome: "refused", error };
    const known = this.accepted.get(message.id);
    if (known !== undefined) return { outcome: "accepted", turn: known };
    const { open } = this;
    if (open !== null) return { outcome: "busy", turn: open.number };
    const { random, time } = this.#parts;
    this.#forget();
    const turn = this.#begin(message, time.elapsed);
    this.accepted.set(message.id, turn);
    if (!this.#isCalm && random.chance(ASKS)) this.#ask(time.elapsed + random.between(TURN_MIN_MS, 1_000));
    else this.#finish(time.elapsed + this.#length);
    this.#wake();
    return { outcome: "accepted", turn };
  }

  /** @returns whether the turn was open. */
  interrupt(turn: number): boolean {
    if (this.open?.number !== turn) return false;
    this.#forget();
    for (const item of this.#openItems()) this.#say({ ...item, status: "interrupted" }, this.#working);
    this.#rest(this.#parts.time.elapsed, turn);
    this.#wake();
    return true;
  }

  /** @returns whether the request was open. */
  answer(requestId: string): boolean {
    const request = this.waitsFor;
    if (request?.native_id !== requestId) return false;
    this.#answeredAt = this.#parts.time.elapsed;
    this.#say({ ...request, status: "completed" }, this.#working);
    this.#finish(this.#parts.time.elapsed + this.#length);
    this.#wake();
    return true;
  }

  /** Completes when there is something to read above this number. */
  newsAfter(rev: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { elapsed } = this.#parts.time;
      const next = this.said.find((said) => said.rev > rev);
      if (next !== undefined && next.at <= elapsed) return Effect.void;
      const woken = Effect.callback<void>((resume) => {
        const wake = (): void => resume(Effect.void);
        this.#readers.add(wake);
        return Effect.sync(() => this.#readers.delete(wake));
      });
      const due = next === undefined ? Effect.never : Effect.sleep(next.at - elapsed);
      return Effect.andThen(Effect.raceFirst(woken, due), this.newsAfter(rev));
    });
  }

  /** Those that wait now: one that reads on waits again at once. */
  #wake(): void {
    const readers = [...this.#readers];
    this.#readers.clear();
    for (const wake of readers) wake();
  }

  get #length(): number {
    const { random } = this.#parts;
    if (this.#isCalm) return random.between(TURN_MIN_MS, CALM_TURN_MAX_MS);
    return random.chance(LONG)
      ? random.between(LONG_MIN_MS, LONG_MAX_MS)
      : random.between(TURN_MIN_MS, TURN_MAX_MS);
  }

  /** Of the newest turn. */
  get #number(): number {
    return this.#turns.at(-1)?.number ?? 0;
  }

  get #working(): State {
    return { isWorking: true, waitingFor: null, ended: this.#number - 1 };
  }

  #begin(message: OutgoingMessage | null, since: number): number {
    const number = this.#number + 1;
    this.#turns = [...this.#turns, { number, messageId: message?.id ?? null, since }];
    if (message !== null) {
      const native = versionOf(`message ${message.id}`, 0, true);
      const content = [{ type: "text" as const, text: message.text }];
      this.#say({ ...native, role: "user", message_id: message.id, content }, this.#working, since);
    }
    const { id } = this.#parts;
    // Its answer begins, and ends after the work that it announces.
    this.#say(versionOf(`${id} turn ${number}`, 0, false), this.#working, since);
    this.#say(versionOf(`${id} work ${number}`, 0, true), this.#working, since);
    return number;
  }

  #ask(at: number): void {
    const { random, id } = this.#parts;
    const nativeId = `${id} request ${this.#number}`;
    const kind = random.chance(0.5) ? ("permission" as const) : ("question" as const);
    const question = { title: "Which", text: "Which one?", options: [], multiple: false };
    const request = { kind, title: "May I?", patterns: [], questions: kind === "question" ? [question] : [] };
    const item: NativeItem = { ...versionOf(nativeId, 0, false), kind: "request", role: null, request };
    this.#say(item, { ...this.#working, waitingFor: nativeId }, at);
  }

  /** Its answer is complete, and the turn ends. Now and then it begins another one by itself, before it hears of more. */
  #finish(at: number): void {
    const { random, id } = this.#parts;
    this.#say(versionOf(`${id} turn ${this.#number}`, 0, true), this.#working, at);
    this.#rest(at, this.#number);
    if (this.#isCalm || !random.chance(GOES_ON)) return;
    const since = at + random.between(0, GOES_ON_AFTER_MAX_MS);
    this.#begin(null, since);
    this.#finish(since + random.between(TURN_MIN_MS, FIRST_TURN_MAX_MS));
  }

  #rest(at: number, ended: number): void {
    this.#say(null, { isWorking: false, waitingFor: null, ended }, at);
  }

  /** The rest of the turn is dropped. */
  #forget(): void {
    const { elapsed } = this.#parts.time;
    this.said.length = this.present.length;
    this.#turns = this.#turns.filter(({ since }) => since <= elapsed);
  }

  #openItems(): readonly NativeItem[] {
    const items = new Map<string, NativeItem>();
    for (const { item } of this.said) if (item !== null) items.set(item.native_id, item);
    return [...items.values()].filter(({ status }) => status === "running");
  }

  #say(item: NativeItem | null, state: State, at: number = this.#parts.time.elapsed): void {
    const rev = this.said.length + 1;
    const before = madeIn(this.said);
    const order = (id: string) => (before.includes(id) ? before.indexOf(id) : before.length);
    const numbered = item === null ? null : { ...item, rev, order: order(item.native_id) };
    this.said.push({ ...state, at, rev, item: numbered });
  }
}
