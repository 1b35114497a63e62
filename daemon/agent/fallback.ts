/**
 * The turns that go on with the model of another agent (src/domain/agents/fallback.ts has the rules).
 *
 *  F1 Only items of the present turn count as its words. Adapters report older ones again.
 *  F2 The item that tells only how the turn failed waits. It is left out if the turn goes on, even if it comes later, and else told before
 *     the turn's end.
 *  F3 The runtime may be seen at rest before it has told how the turn ended. A turn without a word stays open for `TOLD_WITHIN_MS`.
 */
import { fallbackNote, mayFallBack, nextFallback, saidNothing } from "../../src/domain/agents/fallback.ts";
import { contentText } from "../../src/domain/conversation/conversation.ts";
import type { LaunchFallback } from "../../src/domain/sandbox/launch.ts";
import type { ItemDraft } from "../adapters/adapter.ts";
import type { TurnEnd } from "../report.ts";

const TOLD_WITHIN_MS = 3000;

/** What the turn goes on with. */
export interface Onward {
  readonly agent: LaunchFallback;
  /** For people. */
  readonly note: string;
}

export interface FallbackOptions {
  /** Of the session's agent, the first to try first. */
  readonly agents: readonly LaunchFallback[];
  /** The model of a session whose messages choose none. Null if not known. */
  readonly model: string | null;
  /** Takes the items that are told. */
  readonly item: (draft: ItemDraft) => void;
  /** ms since the epoch. */
  readonly now: () => number;
}

export class Fallback {
  readonly #options: FallbackOptions;
  /** How many agents have had their turn. */
  #at = 0;
  /** The model of the present turn. Null if not known. */
  #model: string | null;
  /** A person has chosen a mode, which stays. */
  #hasMode: boolean;
  #messageId = "";
  /** The runtime's id of the message. Null if it has not told the message. */
  #turnId: string | null = null;
  /** What the agent wrote in the turn, by item. */
  readonly #texts = new Map<string, string>();
  /** The turn has a thought, a tool, a plan or a request. */
  #hasActed = false;
  #isTold = false;
  #restMs: number | null = null;
  /** F2. */
  readonly #held = new Map<string, ItemDraft>();
  readonly #leftOut = new Set<string>();
  /** When the turn went on last, ms since the epoch. Null if it has not. */
  #onwardMs: number | null = null;

  /** @param hasMode whether a person chose a mode in a former sandbox */
  constructor(options: FallbackOptions, hasMode = false) {
    this.#options = options;
    this.#model = options.model;
    this.#hasMode = hasMode;
  }

  /** A message is handed over. */
  begins(id: string, choice: { readonly model: string | null; readonly agent: string | null }): void {
    this.tellHeld();
    if (choice.model !== null) this.#at = 0;
    this.#model = choice.model ?? this.#model;
    this.#hasMode ||= choice.agent !== null;
    this.#messageId = id;
    this.#turnId = null;
    this.#texts.clear();
    this.#hasActed = false;
    this.#isTold = false;
    this.#restMs = null;
    this.#onwardMs = null;
  }

  /** An item of the conversation. */
  readonly item = (draft: ItemDraft): void => {
    const { native_id: id, message_id: messageId, turn_id: turnId, role } = draft;
    if (this.#leftOut.has(id)) return;
    if (messageId === this.#messageId && role === "user") this.#turnId = id;
    if (role === "agent" && turnId !== null && turnId === this.#turnId) {
      const isFailure = draft.kind === "message" && draft.status === "failed";
      const text = contentText(draft.content);
      if (isFailure && text === "" && draft.error !== null) {
        if (this.#onwardMs !== null && draft.created_at < this.#onwardMs) return void this.#leftOut.add(id);
        if (this.#next(draft.error) !== null) return void this.#held.set(id, draft);
      }
      if (draft.kind === "message") this.#texts.set(id, text);
      else this.#hasActed = true;
    }
    this.#options.item(draft);
  };

  /** The present turn ends. @returns null if it does not go on */
  ends({ state, error }: TurnEnd): Onward | null {
    this.#isTold = true;
    const place = state === "failed" && error !== null ? this.#next(error) : null;
    const agent = place === null ? undefined : this.#options.agents[place];
    if (place === null || agent === undefined || error === null) {
      this.tellHeld();
      return null;
    }
    const failedModel = this.#model ?? [...this.#held.values()].at(-1)?.model ?? null;
    for (const id of this.#held.keys()) this.#leftOut.add(id);
    this.#held.clear();
    const note = fallbackNote(failedModel, error, agent);
    this.#at = place + 1;
    this.#model = agent.model;
    this.#isTold = false;
    this.#restMs = null;
    this.#onwardMs = this.#options.now();
    return { agent: this.#hasMode ? { ...agent, mode: null } : agent, note };
  }

  /** F3. Whether a turn that is seen at rest has ended. */
  isOver(nowMs: number): boolean {
    if (this.#isTold || this.#hasActed || this.#texts.size > 0) return true;
    this.#restMs ??= nowMs;
    return nowMs - this.#restMs >= TOLD_WITHIN_MS;
  }

  /** Whether the end of the present turn was told. */
  get isTold(): boolean {
    return this.#isTold;
  }

  /** The end of the present turn is told. */
  told(): void {
    this.#isTold = true;
  }

  /** F2. The turn does not go on. */
  tellHeld(): void {
    for (const draft of this.#held.values()) this.#options.item(draft);
    this.#held.clear();
  }

  #next(error: NonNullable<TurnEnd["error"]>): number | null {
    if (this.#hasActed || !mayFallBack(error) || !saidNothing([...this.#texts.values()], error)) return null;
    return nextFallback(this.#options.agents, { at: this.#at, failed: this.#model });
  }
}
