/**
 * The messages that this page sends to the agent of one session, until the conversation has them. It uses no document.
 *
 *  O1 A message keeps its id over all attempts, so that the service takes it once, even from two pages.
 *  O2 A message leaves when the conversation has its id, when the service takes it, or when its text goes back to the
 *     composer. Until then the browser's storage has it, too (outboxes.ts).
 *  O3 The service's refusal is final. A failure of the service is tried again a few times. A refused text waits for the
 *     session's page, which gives it to the composer. One that is refused because of a secret is not stored meanwhile.
 *  O4 Messages that queue are sent one after the other, so that none overtakes an earlier one. A message that interrupts
 *     does not wait for them.
 *  O5 While the service is away, a message waits until somebody cancels it. It is tried again when the page hears from the
 *     service, and after pauses, because a stream may stay open beside calls that fail.
 */
import { ApiError, post } from "../api/api.ts";
import { now } from "../elements/format.ts";
import type { Item } from "../wire.d.ts";
import { noteWritten } from "./written.ts";
import type { Attachment } from "../composer/files.ts";

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
  /** Later than that of the message before it. */
  readonly at: string;
  /** Its author's name. */
  readonly by: string;
  /** Why no further attempt is made. Null while there is one. */
  problem: string | null;
}

/** The page of the session. */
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

/** The surroundings of an outbox (outboxes.ts). */
export interface OutboxPlace {
  /** Of the session in the API. */
  readonly path: string;
  /** The reader's name. */
  readonly me: string;
  readonly keep: (one: Sent) => void;
  readonly forget: (id: string) => void;
  /** The service refused a message while the page of its session is not shown. */
  readonly refused: (error: ApiError) => void;
}

export class Outbox {
  readonly #place: OutboxPlace;
  /** Null: the page of the session is not shown. */
  #listener: OutboxListener | null = null;
  /** What the service refused meanwhile (O3). */
  #refused: { readonly one: Sent; readonly error: ApiError }[] = [];
  /** Oldest first. */
  #sent: Sent[] = [];
  /** The one that queues and is being sent. */
  #current: Sent | null = null;
  #absence: string | null = null;
  #lastAt = 0;
  readonly #pauses = new Set<Pause>();
  #isOver = false;

  constructor(place: OutboxPlace) {
    this.#place = place;
  }

  /** Messages that the conversation does not have yet, oldest first. */
  get sent(): readonly Sent[] {
    return this.#sent;
  }

  /** Why the messages without a problem wait for the service. Null: they are on their way. */
  get absence(): string | null {
    return this.#absence;
  }

  /** The page of the session is shown. @returns it is left */
  readonly listen = (listener: OutboxListener): (() => void) => {
    this.#listener = listener;
    for (const { one, error } of this.#refused) {
      this.#place.forget(one.id);
      listener.refused(one.message, error);
    }
    this.#refused = [];
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  };

  readonly send = (message: Message): void => {
    this.#lastAt = Math.max(now(), this.#lastAt + 1);
    const at = new Date(this.#lastAt).toISOString();
    const one: Sent = { id: makeId(), message, at, by: this.#place.me, problem: null };
    this.#place.keep(one);
    this.add(one);
  };

  /** Sends a message that another page has kept. */
  readonly add = (one: Sent): void => {
    if (this.#knows(one.id)) return;
    this.#sent = [...this.#sent, one].toSorted((a, b) => a.at.localeCompare(b.at));
    this.#begin(one);
    this.#listener?.changed();
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
    this.#listener?.changed();
  };

  /** Gives up a message that waits for the service, or could not be sent. Null: it is on its way. */
  readonly takeBack = (id: string): Message | null => {
    const one = this.#unsent(id);
    if (one === undefined) return null;
    this.#drop(one);
    this.#listener?.changed();
    return one.message;
  };

  /** Another page of the browser has removed it. */
  readonly forget = (id: string): void => {
    this.#refused = this.#refused.filter(({ one }) => one.id !== id);
    const one = this.#sent.find((sent) => sent.id === id);
    if (one === undefined) return;
    this.#leave(one);
    this.#listener?.changed();
  };

  /** Forgets what the conversation has by now. */
  readonly settle = (has: (id: string) => boolean): void => {
    for (const one of this.#sent.filter(({ id }) => has(id))) this.#drop(one);
  };

  readonly end = (): void => {
    this.#isOver = true;
    for (const { stop } of this.#pauses) stop();
  };

  #knows(id: string): boolean {
    return this.#sent.some((one) => one.id === id) || this.#refused.some(({ one }) => one.id === id);
  }

  #unsent(id: string): Sent | undefined {
    return this.#sent.find((one) => one.id === id && (one.problem ?? this.#absence) !== null);
  }

  #drop(one: Sent): void {
    this.#place.forget(one.id);
    this.#leave(one);
  }

  #leave(one: Sent): void {
    this.#sent = this.#sent.filter((other) => other !== one);
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
      const { message } = await post(`${this.#place.path}/messages`, {
        id: one.id,
        ...payloadOf(one.message),
      });
      this.#absence = null;
      noteWritten(this.#place.path);
      this.#drop(one);
      this.#listener?.taken(message);
      return "ended";
    } catch (error) {
      return this.#failed(one, { isLast, error });
    } finally {
      this.#listener?.changed();
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
      this.#refuse(one, error);
      return "ended";
    }
    if (!isLast && status !== SIGNED_OUT) return "again";
    one.problem = reason;
    return "ended";
  }

  #refuse(one: Sent, error: ApiError): void {
    if (this.#listener !== null) {
      this.#drop(one);
      this.#listener.refused(one.message, error);
      return;
    }
    if (error.code === "secret_in_message") this.#place.forget(one.id);
    this.#leave(one);
    this.#refused.push({ one, error });
    this.#place.refused(error);
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
