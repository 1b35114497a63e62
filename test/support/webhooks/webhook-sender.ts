/**
 * A sender of signed webhooks that behaves like a code host. It retries until each delivery is answered, although the
 * service may die and come back at the same address at any time, and records every answer under its delivery id.
 *
 *  A1 A delivery that met a lost connection or a 5xx is sent again later under its own id. An answered one is not.
 *  A2 Chosen deliveries are sent twice at once and a third time later. One is sent in a burst of many.
 *  A3 It waits only for answers and `whenUp`: an attempt while the service is down is made once it runs.
 */
import { createHmac } from "node:crypto";

/** One answer. `begun` and `ended` come from one clock, so that the order of two answers is known. */
export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly begun: number;
  readonly ended: number;
}

/** Every answer that each delivery id got. */
export type RequestLog = ReadonlyMap<string, readonly Answer[]>;

export interface SenderOptions {
  /** The trigger's address. */
  readonly url: string;
  readonly secret: string;
  readonly deliveries: number;
  /** The prefix of its delivery ids. Default: "delivery". */
  readonly prefix?: string;
  /** The share of deliveries that are sent more than once, from 0 to 1. */
  readonly duplicateShare: number;
  /** How often the first one is sent at once. */
  readonly burst: number;
  /** How many requests may be under way at the same time. */
  readonly concurrency: number;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Completes when the service is reachable. A rejection ends the sending. */
  readonly whenUp: () => Promise<unknown>;
}

interface Task {
  readonly id: string;
  readonly body: string;
  readonly signature: string;
  attempts: number;
}

/** A delivery without an answer after this many attempts will never get one. */
const ATTEMPTS_MAX = 100;

export class WebhookSender {
  readonly #options: SenderOptions;
  readonly #log = new Map<string, Answer[]>();
  readonly #tasks: Task[];
  readonly #waiting: { readonly attempts: number; readonly resolve: () => void }[] = [];
  #next = 0;
  #attempts = 0;
  #unanswered = 0;
  #latencyMs = 0;
  #clock = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#tasks = planned(options);
  }

  /** How many attempts are certain. There are more if answers are lost. */
  get planned(): number {
    return this.#tasks.length;
  }

  /** Attempts without a complete answer. */
  get unanswered(): number {
    return this.#unanswered;
  }

  /** How long the latest answer took. */
  get latencyMs(): number {
    return this.#latencyMs;
  }

  /** Completes when this many attempts have begun. */
  reached(attempts: number): Promise<void> {
    if (this.#attempts >= attempts) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ attempts, resolve });
    });
  }

  /** Sends all of it. Completes when each delivery is answered as often as it was sent. */
  async send(): Promise<RequestLog> {
    await Promise.all(Array.from({ length: this.#options.concurrency }, () => this.#work()));
    return this.#log;
  }

  async #work(): Promise<void> {
    for (let task = this.#take(); task !== undefined; task = this.#take()) {
      await this.#options.whenUp();
      const answer = await this.#attempt(task);
      if (answer === null || answer.status >= 500) this.#again(task, answer);
    }
  }

  #take(): Task | undefined {
    const task = this.#tasks[this.#next];
    if (task !== undefined) this.#next += 1;
    return task;
  }

  #again(task: Task, answer: Answer | null): void {
    task.attempts += 1;
    if (task.attempts >= ATTEMPTS_MAX)
      throw new Error(`${task.id} is not taken: ${answer === null ? "no answer" : JSON.stringify(answer)}`);
    this.#tasks.push(task);
  }

  /** Sends it once. Null without a complete answer. */
  async #attempt({ id, body, signature }: Task): Promise<Answer | null> {
    const begun = this.#tick();
    const begunAt = performance.now();
    this.#count();
    try {
      const response = await fetch(this.#options.url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-github-delivery": id,
          "x-hub-signature-256": `sha256=${signature}`,
        },
        body,
      });
      const text = await response.text();
      const answer: Answer = {
        status: response.status,
        body: JSON.parse(text) as Record<string, unknown>,
        begun,
        ended: this.#tick(),
      };
      this.#latencyMs = performance.now() - begunAt;
      this.#log.set(id, [...(this.#log.get(id) ?? []), answer]);
      return answer;
    } catch (error) {
      // fetch throws this if a connection is refused, reset, or ends inside the answer.
      if (!(error instanceof TypeError)) throw error;
      this.#unanswered += 1;
      return null;
    }
  }

  #tick(): number {
    this.#clock += 1;
    return this.#clock;
  }

  #count(): void {
    this.#attempts += 1;
    for (const { attempts, resolve } of this.#waiting) if (attempts <= this.#attempts) resolve();
  }
}

/** The planned requests, in order (A2). */
const planned = (options: SenderOptions): Task[] => {
  const { secret, deliveries, prefix = "delivery", duplicateShare, burst, random } = options;
  const later = new Map<number, Task[]>();
  const tasks: Task[] = [];
  for (let index = 0; index < deliveries; index += 1) {
    const id = `${prefix}-${index}`;
    const body = JSON.stringify({ ref: "refs/heads/main", head_commit: { id, message: `Change ${index}` } });
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const task = (): Task => ({ id, body, signature, attempts: 0 });
    const isDoubled = random() < duplicateShare;
    const copies = index === 0 ? burst : isDoubled ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) tasks.push(task());
    if (isDoubled) {
      const place = index + Math.floor(random() * (deliveries - index));
      later.set(place, [...(later.get(place) ?? []), task()]);
    }
    tasks.push(...(later.get(index) ?? []));
  }
  return tasks;
};
