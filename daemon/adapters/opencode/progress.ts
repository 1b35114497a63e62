/**
 * The progress of the model in one turn, by opencode's events: how long it has been silent, and how many of its calls in a row brought nothing.
 *
 *  P1 The model is heard by text, thought, a tool call and the end of a call. A connection that is only kept open is no event.
 *  P2 It is silent only while it is called: not while a tool runs. opencode does not report the arguments of a tool while they come.
 *     A turn begins with a call: what opencode does before it, such as waiting for a server of tools, counts as silence too.
 *  P3 A call brings something if it has a text that no earlier call of the turn had, or a tool that has completed. The call of an unknown tool is none.
 */
import { createHash } from "node:crypto";

/** The part of a message of the model that is read. */
export interface CallInfo {
  readonly id?: string;
  readonly time?: { readonly completed?: number };
}

export interface CallPart {
  readonly id: string;
  readonly messageID: string;
  readonly type: string;
  readonly text?: string;
  readonly tool?: string;
  readonly state?: { readonly status: string };
}

/** opencode's name for a call of a tool that it does not have, or whose arguments it cannot read. It completes at once. */
export const UNKNOWN_TOOL = "invalid";

interface Call {
  readonly texts: Map<string, string>;
  hasTool: boolean;
  isOver: boolean;
}

/** P1. */
const SIGNS: ReadonlySet<string> = new Set(["text", "reasoning", "tool", "step-finish"]);

export class ModelProgress {
  readonly #calls = new Map<string, Call>();
  readonly #texts = new Set<string>();
  /** States of the tool calls that have not ended. */
  readonly #tools = new Map<string, string>();
  /** When the model was heard last, ms since the epoch. Null if it is not called. */
  #heardMs: number | null;
  #idle = 0;
  /** Whether the call has reached the model, as far as opencode tells it. */
  #isAsked = false;

  /** @param atMs when the turn began, or was seen first */
  constructor(atMs: number) {
    this.#heardMs = atMs;
  }

  /** How many calls there were. */
  get calls(): number {
    return this.#calls.size;
  }

  /** P3: how many calls in a row brought nothing. */
  get idleCalls(): number {
    return this.#idle;
  }

  /** Whether opencode has asked the model in this call. */
  get isAsked(): boolean {
    return this.#isAsked;
  }

  /** Whether a call has ended. */
  isOver(id: string): boolean {
    return this.#calls.get(id)?.isOver === true;
  }

  /** The runtime begins an attempt. */
  beginAttempt(atMs: number): void {
    if (this.#heardMs === null) return;
    this.#heardMs = atMs;
    this.#isAsked = this.#calls.size > 0;
  }

  message({ id, time }: CallInfo, atMs: number): void {
    if (id === undefined) return;
    const latest = this.#calls.get(id);
    if (latest === undefined) this.#isAsked = false;
    const call = latest ?? { texts: new Map<string, string>(), hasTool: false, isOver: false };
    this.#calls.set(id, call);
    if (call.isOver) return;
    this.#heardMs = atMs;
    if (time?.completed !== undefined) this.#end(call);
  }

  part({ id, messageID, type, text = "", tool, state }: CallPart, atMs: number): void {
    const call = this.#calls.get(messageID);
    if (call === undefined || !SIGNS.has(type)) return;
    if (type === "text" && text.trim() !== "") call.texts.set(id, text);
    if (state?.status === "completed" && tool !== UNKNOWN_TOOL) call.hasTool = true;
    if (state?.status === "pending" || state?.status === "running") this.#tools.set(id, state.status);
    else this.#tools.delete(id);
    this.delta(messageID, atMs);
  }

  /** A piece of a text or thought. */
  delta(messageId: string, atMs: number): void {
    if (this.#heardMs === null || !this.#calls.has(messageId)) return;
    this.#heardMs = atMs;
    this.#isAsked = true;
  }

  /**
   * P2. The limit that the model's silence has passed, ms.
   *
   * @param silentMs the limit while the arguments of a tool come
   */
  passedSilence(
    atMs: number,
    { modelSilenceMs, silentMs }: { readonly modelSilenceMs: number; readonly silentMs: number },
  ): number | null {
    const states = new Set(this.#tools.values());
    if (this.#heardMs === null || states.has("running")) return null;
    const limit = states.has("pending") ? Math.max(modelSilenceMs, silentMs) : modelSilenceMs;
    return atMs - this.#heardMs > limit ? limit : null;
  }

  #end(call: Call): void {
    call.isOver = true;
    this.#heardMs = null;
    const texts = [...call.texts.values()].map((text) => createHash("sha256").update(text).digest("base64"));
    const isNew = texts.some((text) => !this.#texts.has(text));
    for (const text of texts) this.#texts.add(text);
    call.texts.clear();
    this.#idle = isNew || call.hasTool ? 0 : this.#idle + 1;
  }
}
