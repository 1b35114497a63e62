/**
 * Enforces the limits on waiting for a peer. One timer serves all requests of a proxy, so that a request with a limit
 * costs only its place in a list.
 */

/** How long each wait may take, in milliseconds. */
export interface Limits {
  /** For an upstream's connection to open. On the same machine it opens at once or not at all (threats.md X16). */
  readonly connectMs: number;
  /**
   * For the first byte of an answer, once the upstream has the whole request. An agent may answer at the end of its
   * turn, so this is as long as a turn may be (api.md 3: 4 h). An answer that has begun has no limit (api.md 7).
   */
  readonly answerMs: number;
  /** For the next byte of a request's body, while there is no answer and the upstream could take more (api.md 1). */
  readonly bodyMs: number;
  /** For a byte on an upgraded connection of which one side has ended. */
  readonly halfOpenMs: number;
}

export const LIMITS: Limits = {
  connectMs: 10_000,
  answerMs: 4 * 60 * 60_000,
  bodyMs: 60_000,
  halfOpenMs: 60_000,
};

/** The precision of the limits. */
const LOOK_EVERY_MS = 1000;

/** Ends the watched request if, at this instant of `performance.now`, it has waited too long. */
export interface WatchedRequest {
  look(now: number): void;
}

export class Watch {
  /**
   * Slots that are taken and freed. A Set would cost a fifth of a request: each hash table that it outgrows points to
   * the next one, so one old table keeps all later requests alive until a full garbage collection.
   */
  readonly #places: (WatchedRequest | null)[] = [];
  readonly #free: number[] = [];
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | null = null;

  constructor({ connectMs, answerMs, bodyMs }: Limits) {
    this.#everyMs = Math.min(LOOK_EVERY_MS, connectMs, answerMs, bodyMs);
  }

  /** Watches it until its place is returned. @returns the place. */
  add(entry: WatchedRequest): number {
    const place = this.#free.pop() ?? this.#places.length;
    this.#places[place] = entry;
    // oxlint-disable-next-line no-restricted-globals -- the adapter to Node's sockets, below Effect
    this.#timer ??= setInterval(() => this.#look(), this.#everyMs).unref();
    return place;
  }

  delete(place: number): void {
    this.#places[place] = null;
    this.#free.push(place);
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #look(): void {
    const now = performance.now();
    for (const place of this.#places) place?.look(now);
    if (this.#free.length === this.#places.length) this.close();
  }
}
