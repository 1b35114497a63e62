/**
 * Whether the database is well, told by the traffic that there is anyway: the node's heartbeat (nodes.ts) is a prepared
 * statement that writes a row and sends a notification, which this process hears itself.
 *
 *  B1 Nothing here sends a statement.
 *  B2 A server that refuses a write as read-only is no primary any more. All connections to it end, even those that only
 *     read or listen, and new ones reach the new primary.
 *  B3 A notification that does not come back ends all connections too: the listening one may be at another server.
 */
import * as Context from "effect/Context";
import * as Layer from "effect/Layer";

/** What "lately" means, ms. A heartbeat is due every second. */
export const LATELY_MS = 10_000;

export class Pulse {
  readonly #now: () => number;
  readonly #enders = new Set<() => void>();
  #era = 0;
  #wroteAt = -Infinity;
  #isRefused = false;
  #fullAt = -Infinity;
  /** When the oldest heartbeat was written whose notification did not come back. */
  #unheardSince: number | null = null;

  /** @param now ms of a clock that never steps back */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Rises when all connections end. A connection of an earlier era is not used again. */
  get era(): number {
    return this.#era;
  }

  /** Whether writes went through lately, and the last one did. */
  get writes(): boolean {
    const now = this.#now();
    return !this.#isRefused && now - this.#wroteAt <= LATELY_MS && now - this.#fullAt > LATELY_MS;
  }

  /** Whether the notification of every heartbeat came back lately. */
  get notifies(): boolean {
    return this.#unheardSince === null || this.#now() - this.#unheardSince <= LATELY_MS;
  }

  /** Calls `end` when a new era begins. @returns what forgets it */
  onEra(end: () => void): () => void {
    this.#enders.add(end);
    return () => this.#enders.delete(end);
  }

  #renew(): void {
    this.#era += 1;
    for (const end of this.#enders) end();
  }

  /** A heartbeat was written. */
  beat(): void {
    const now = this.#now();
    this.#wroteAt = now;
    this.#isRefused = false;
    if (!this.notifies) {
      this.#renew();
      this.#unheardSince = now;
    }
    this.#unheardSince ??= now;
  }

  /** A heartbeat could not be written. */
  missed(): void {
    this.#isRefused = true;
  }

  /** The notification of a heartbeat came back. */
  heard(): void {
    this.#unheardSince = null;
  }

  /** The server refused a write, because it is read-only. */
  readOnly(): void {
    this.#isRefused = true;
    this.#renew();
  }

  /** The server refused a write, because its disk is full. Small writes may still go through. */
  full(): void {
    this.#fullAt = this.#now();
  }
}

export class DatabasePulse extends Context.Service<DatabasePulse, Pulse>()(
  "platform/store/postgres/DatabasePulse",
) {}

export const layer = Layer.sync(DatabasePulse, () => new Pulse(() => performance.now()));
