/**
 * The messages that this page sends to an agent, until the conversation has them. It uses no document.
 *
 *  O1 A message keeps its id over all attempts, so that the service takes it once.
 *  O2 A message leaves when the conversation has its id, when the service takes it, or when its text goes back to the
 *     composer. Until then the tab's storage has it, too.
 *  O3 The service's refusal is final. Only an answer that is missing, or a failure of the service, is tried again.
 *  O4 Messages that queue are sent one after the other, so that none overtakes an earlier one. A message that interrupts
 *     does not wait for them.
 */
import { ApiError, post } from "../api/api.ts";
import { now } from "../elements/format.ts";
import { keep, readKept } from "../frame/kept.ts";
import type { Item } from "../wire.d.ts";
import { noteWritten } from "../live/written.ts";
import type { Attachment } from "./files.ts";

export interface Message {
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  readonly delivery: "queue" | "interrupt";
  readonly model?: string;
  readonly agent?: string;
  readonly effort?: string;
  /** Whether a restart brings saved work back. */
  readonly restore?: boolean;
}

export interface Sent {
  readonly id: string;
  readonly message: Message;
  readonly at: string;
  /** Why no further attempt is made. Null while there is one. */
  problem: string | null;
}

export interface OutboxListener {
  readonly changed: () => void;
  readonly taken: (item: Item) => void;
  readonly refused: (message: Message, error: ApiError) => void;
}

/** The pauses before further attempts. */
const RETRY_MS = [500, 2000, 5000];
/** Refusals that are about the moment, and not about the message. */
const PASSING: ReadonlySet<number> = new Set([401, 408]);

const storedAs = (path: string): string => `unsent ${path}`;

/** The storage may have messages of a later visit to the same session, too. */
const store = (path: string, change: (all: readonly Sent[]) => readonly Sent[]): void => {
  const all = change(readKept(storedAs(path)) ?? []);
  keep(storedAs(path), all.length === 0 ? null : all);
};

/** A random UUID. The browser's own function is missing where the page does not come over TLS. */
export const makeId = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
};

const toSent = (message: Message, problem: string | null): Sent => ({
  id: makeId(),
  message,
  at: new Date(now()).toISOString(),
  problem,
});

/** The message as the service takes it. */
export const payloadOf = ({ text, attachments = [], restore = false, ...others }: Message) => ({
  ...(text !== "" && { text }),
  ...others,
  ...(restore && { restore_saved: true }),
  ...(attachments.length > 0 && { attachments: attachments.map(({ id }) => id) }),
});

export class Outbox {
  readonly #path: string;
  readonly #listener: OutboxListener;
  /** Oldest first. */
  #sent: Sent[];
  /** The one that queues and is being sent. */
  #current: Sent | null = null;
  /** Ends the pauses before further attempts. */
  readonly #pauses = new Set<() => void>();

  /** @param path of the session in the API */
  constructor(path: string, listener: OutboxListener) {
    this.#path = path;
    this.#listener = listener;
    this.#sent = readKept(storedAs(path)) ?? [];
    for (const one of this.#sent) one.problem ??= "The page was left before the service answered.";
  }

  /** Messages that the conversation does not have yet, oldest first. */
  get sent(): readonly Sent[] {
    return this.#sent;
  }

  readonly send = (message: Message): void => {
    const one = toSent(message, null);
    this.#sent.push(one);
    store(this.#path, (all) => [...all, one]);
    this.#begin(one);
    this.#listener.changed();
  };

  /** Sends it once more, under the same id. */
  readonly again = (id: string): void => {
    const one = this.#unsent(id);
    if (one === undefined) return;
    one.problem = null;
    this.#begin(one);
    this.#listener.changed();
  };

  /** Gives up a message that could not be sent. Null: it is on its way. */
  readonly takeBack = (id: string): Message | null => {
    const one = this.#unsent(id);
    if (one === undefined) return null;
    this.#drop(one);
    this.#listener.changed();
    return one.message;
  };

  /** Forgets what the conversation has by now. */
  readonly settle = (has: (id: string) => boolean): void => {
    for (const one of this.#sent.filter(({ id }) => has(id))) this.#drop(one);
  };

  readonly end = (): void => {
    for (const stop of this.#pauses) stop();
  };

  #unsent(id: string): Sent | undefined {
    return this.#sent.find((one) => one.id === id && one.problem !== null);
  }

  #drop(one: Sent): void {
    this.#sent = this.#sent.filter((other) => other !== one);
    store(this.#path, (all) => all.filter(({ id }) => id !== one.id));
    this.#pass(one);
  }

  #begin(one: Sent): void {
    if (one.message.delivery === "interrupt") void this.#deliver(one);
    else void this.#sendNext();
  }

  async #sendNext(): Promise<void> {
    const one = this.#sent.find(({ message, problem }) => message.delivery === "queue" && problem === null);
    if (this.#current !== null || one === undefined) return;
    this.#current = one;
    await this.#deliver(one);
    this.#pass(one);
  }

  /** Its turn is over. */
  #pass(one: Sent): void {
    if (this.#current !== one) return;
    this.#current = null;
    void this.#sendNext();
  }

  /** Tries until the message has left or its problem is known. */
  async #deliver(one: Sent): Promise<void> {
    for (const pause of [...RETRY_MS, null]) {
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      if ((await this.#attempt(one, pause === null)) !== "again" || pause === null) return;
      // oxlint-disable-next-line no-await-in-loop -- the same
      await this.#rest(pause);
      if (!this.#sent.includes(one)) return;
    }
  }

  async #attempt(one: Sent, isLast: boolean): Promise<"again" | "ended"> {
    try {
      const { message } = await post(`${this.#path}/messages`, { id: one.id, ...payloadOf(one.message) });
      noteWritten(this.#path);
      this.#drop(one);
      this.#listener.taken(message);
      return "ended";
    } catch (error) {
      return this.#sent.includes(one) ? this.#failed(one, { isLast, error }) : "ended";
    } finally {
      this.#listener.changed();
    }
  }

  #failed(one: Sent, { isLast, error }: { isLast: boolean; error: unknown }): "again" | "ended" {
    const status = error instanceof ApiError ? error.status : 0;
    if (error instanceof ApiError && status >= 400 && status < 500 && !PASSING.has(status)) {
      this.#drop(one);
      this.#listener.refused(one.message, error);
      return "ended";
    }
    if (!isLast && status !== 401) return "again";
    one.problem = error instanceof Error ? error.message : String(error);
    return "ended";
  }

  /** Never resolves if the page is left meanwhile. */
  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      // oxlint-disable-next-line no-restricted-globals -- the browser's timer
      const timer = setTimeout(() => {
        this.#pauses.delete(stop);
        resolve();
      }, ms);
      const stop = (): void => clearTimeout(timer);
      this.#pauses.add(stop);
    });
  }
}
