/**
 * The messages that this page sends to an agent, until the conversation has them. It uses no document.
 *
 *  O1 A message keeps its id over all attempts, so that the service takes it once.
 *  O2 A message leaves when the conversation has its id, when the service takes it, or when its text goes back to the
 *     composer. Until then the tab's storage has it, too.
 *  O3 The service's refusal is final. A failure of the service is tried again a few times.
 *  O4 Messages that queue are sent one after the other, so that none overtakes an earlier one. A message that interrupts
 *     does not wait for them.
 *  O5 While the service is away, a message waits until somebody cancels it. It is tried again when the page hears from the
 *     service, when the page is opened again, and after pauses, because a stream may stay open beside calls that fail.
 *  O6 A text that another person wrote in this tab is not sent by itself.
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
  /** Its author's name. */
  readonly by: string;
  /** Why no further attempt is made. Null while there is one. */
  problem: string | null;
}

export interface OutboxListener {
  readonly changed: () => void;
  readonly taken: (item: Item) => void;
  readonly refused: (message: Message, error: ApiError) => void;
}

/** The pauses before further attempts. While the service is away, the last one is repeated. */
const RETRY_MS = [500, 2000, 5000, 15_000];
/** Attempts with a service that answers, and fails. */
const ATTEMPTS = 4;
/** No answer, or one that a service gives, or a proxy before it, that cannot take anything now. */
const AWAY: ReadonlySet<number> = new Set([0, 408, 502, 503, 504]);
/** The reader is signed out. */
const SIGNED_OUT = 401;

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

/** The message as the service takes it. */
export const payloadOf = ({ text, attachments = [], restore = false, ...others }: Message) => ({
  ...(text !== "" && { text }),
  ...others,
  ...(restore && { restore_saved: true }),
  ...(attachments.length > 0 && { attachments: attachments.map(({ id }) => id) }),
});

interface Pause {
  /** Ends it before its time. */
  readonly wake: () => void;
  readonly stop: () => void;
}

export class Outbox {
  readonly #path: string;
  readonly #me: string;
  readonly #listener: OutboxListener;
  /** Oldest first. */
  #sent: Sent[];
  /** The one that queues and is being sent. */
  #current: Sent | null = null;
  #absence: string | null = null;
  readonly #pauses = new Set<Pause>();
  #isOver = false;

  /** @param path of the session in the API @param me the reader's name */
  constructor(path: string, me: string, listener: OutboxListener) {
    this.#path = path;
    this.#me = me;
    this.#listener = listener;
    this.#sent = readKept(storedAs(path)) ?? [];
    for (const one of this.#sent) {
      if (one.by !== me) one.problem = "Another person wrote this in this tab.";
      else this.#begin(one);
    }
  }

  /** Messages that the conversation does not have yet, oldest first. */
  get sent(): readonly Sent[] {
    return this.#sent;
  }

  /** Why the messages without a problem wait for the service. Null: they are on their way. */
  get absence(): string | null {
    return this.#absence;
  }

  readonly send = (message: Message): void => {
    const at = new Date(now()).toISOString();
    const one: Sent = { id: makeId(), message, at, by: this.#me, problem: null };
    this.#sent.push(one);
    store(this.#path, (all) => [...all, one]);
    this.#begin(one);
    this.#listener.changed();
  };

  /** The page hears from the service: nothing waits any longer. */
  readonly heard = (): void => {
    for (const { wake } of this.#pauses) wake();
  };

  /** Sends it once more, under the same id. */
  readonly again = (id: string): void => {
    const one = this.#unsent(id);
    if (one === undefined) return;
    one.problem = null;
    this.#begin(one);
    this.#listener.changed();
  };

  /** Gives up a message that waits for the service, or could not be sent. Null: it is on its way. */
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
    this.#isOver = true;
    for (const { stop } of this.#pauses) stop();
  };

  #unsent(id: string): Sent | undefined {
    return this.#sent.find((one) => one.id === id && (one.problem ?? this.#absence) !== null);
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
    for (let attempts = 1; ; attempts += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      const result = await this.#attempt(one, attempts >= ATTEMPTS);
      if (result === "ended" || this.#isOver) return;
      // oxlint-disable-next-line no-await-in-loop -- the same
      await this.#rest(RETRY_MS[attempts - 1] ?? Math.max(...RETRY_MS));
      if (!this.#sent.includes(one)) return;
    }
  }

  async #attempt(one: Sent, isLast: boolean): Promise<"again" | "ended"> {
    try {
      const { message } = await post(`${this.#path}/messages`, { id: one.id, ...payloadOf(one.message) });
      this.#absence = null;
      noteWritten(this.#path);
      this.#drop(one);
      this.#listener.taken(message);
      return "ended";
    } catch (error) {
      return this.#failed(one, { isLast, error });
    } finally {
      this.#listener.changed();
    }
  }

  #failed(one: Sent, { isLast, error }: { isLast: boolean; error: unknown }): "again" | "ended" {
    const reason = error instanceof Error ? error.message : String(error);
    // Without an answer at all, the status is unknown, too.
    const status = error instanceof ApiError ? error.status : 0;
    this.#absence = AWAY.has(status) ? reason : null;
    if (this.#absence !== null) return "again";
    if (!this.#sent.includes(one)) return "ended";
    if (error instanceof ApiError && status < 500 && status !== SIGNED_OUT) {
      this.#drop(one);
      this.#listener.refused(one.message, error);
      return "ended";
    }
    if (!isLast && status !== SIGNED_OUT) return "again";
    one.problem = reason;
    return "ended";
  }

  /** Never resolves if the page is left meanwhile. */
  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        pause.stop();
        this.#pauses.delete(pause);
        resolve();
      };
      // oxlint-disable-next-line no-restricted-globals -- the browser's timer
      const timer = setTimeout(wake, ms);
      const pause: Pause = { wake, stop: () => clearTimeout(timer) };
      this.#pauses.add(pause);
    });
  }
}
