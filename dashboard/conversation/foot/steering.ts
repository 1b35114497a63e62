/**
 * The calls that change a conversation, except for the composer's messages: cancel one, end the turn, resume the queue, answer a
 * request. It uses no document.
 *
 *  G1 The conversation is changed by the service only. This file keeps which calls are under way, and what they refused.
 *  G2 A request's record is replaced and never changed, so that a view sees a change by comparing.
 */
import { ApiError, post, remove } from "../../api/api.ts";
import { makeId } from "../../live/outbox.ts";
import { applyEarly, type Conversation } from "../reading/model.ts";
import type { Answer } from "../../wire.d.ts";

export type Reply =
  | { readonly choice: "once" | "always" | "reject"; readonly message?: string }
  | { readonly answers: readonly (readonly string[])[] }
  | { readonly approve: true; readonly mode: string };

/** What this page knows of a request beside its item. */
export interface Asked {
  readonly busy: boolean;
  readonly problem: string | null;
  /** The answer of somebody who was faster. */
  readonly settled: Answer | null;
}

const NOT_ANSWERED: Asked = { busy: false, problem: null, settled: null };

interface Listener {
  readonly changed: () => void;
  /** "": the reader tries the next thing. */
  readonly told: (problem: string) => void;
}

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The answer that the service already had, or null. */
const settledBy = (error: unknown): Answer | null =>
  error instanceof ApiError && error.code === "request_settled"
    ? { at: "", ...error.details?.answer, by: error.details?.by ?? null }
    : null;

export class Steering {
  /** The names of the calls under way: "stop", "resume", and the ids of messages that are being cancelled. */
  readonly busy = new Set<string>();
  readonly #asked = new Map<string, Asked>();
  readonly #path: string;
  readonly #conversation: Conversation;
  readonly #listener: Listener;

  /** @param path of the session in the API */
  constructor(path: string, conversation: Conversation, listener: Listener) {
    this.#path = path;
    this.#conversation = conversation;
    this.#listener = listener;
  }

  readonly askedOf = (id: string): Asked => this.#asked.get(id) ?? NOT_ANSWERED;

  /** @param id of a message that waits */
  readonly cancel = (id: string): Promise<void> =>
    this.#once(id, () => remove(`${this.#path}/messages/${id}`));
  readonly stop = (): Promise<void> => this.#once("stop", () => post(`${this.#path}/interrupt`));
  readonly resume = (): Promise<void> => this.#once("resume", () => post(`${this.#path}/queue/resume`));

  /** @param problem why the reader's answer was not sent */
  readonly refuse = (id: string, problem: string): void => this.#note(id, { problem });

  /** @param id of a request @returns whether this answer counts */
  readonly answer = async (id: string, reply: Reply): Promise<boolean> => {
    if (this.askedOf(id).busy) return false;
    this.#note(id, { busy: true });
    try {
      const { request } = await post(`${this.#path}/requests/${id}/answer`, reply);
      applyEarly(this.#conversation, request);
      this.#note(id, {});
      return true;
    } catch (error) {
      const settled = settledBy(error);
      this.#note(id, settled === null ? { problem: wordsOf(error) } : { settled });
      return false;
    }
  };

  /** Tells the agent what to change in its plan. The message settles the plan. @param id of the plan's request */
  readonly change = async (id: string, text: string): Promise<void> => {
    if (this.askedOf(id).busy) return;
    this.#note(id, { busy: true });
    try {
      await post(`${this.#path}/messages`, { id: makeId(), text, restore_saved: true });
      this.#note(id, { settled: { at: "", by: null, declined: "message" } });
    } catch (error) {
      this.#note(id, { problem: wordsOf(error) });
    }
  };

  /** A call of this name is made once at a time. */
  async #once(name: string, work: () => Promise<unknown>): Promise<void> {
    const { changed, told } = this.#listener;
    if (this.busy.has(name)) return;
    this.busy.add(name);
    told("");
    changed();
    try {
      await work();
    } catch (error) {
      told(wordsOf(error));
    }
    this.busy.delete(name);
    changed();
  }

  #note(id: string, change: Partial<Asked>): void {
    this.#asked.set(id, { ...NOT_ANSWERED, ...change });
    this.#listener.changed();
  }
}
