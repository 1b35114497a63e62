/**
 * Watches what waits for somebody's first word. One timer looks after all requests of a proxy, so that a limit costs a
 * request nothing but its place in a set.
 */

/** How long what may be waited for, in milliseconds. */
export interface Limits {
  /** For an upstream's connection to stand: on one machine it stands at once or not at all (threats.md X16). */
  readonly connectMs: number;
  /**
   * For the first byte of an answer once the whole request is with the upstream. An agent may answer at the end of its
   * turn, so it is as long as a turn may be (api.md 3: 4 h); an answer that has begun has no limit (api.md 7).
   */
  readonly answerMs: number;
  /** For the next byte of a request's body while nothing is answered and the upstream would take more (api.md 1). */
  readonly bodyMs: number;
  /** For a byte on an upgraded connection that one side has ended and the other has not. */
  readonly halfOpenMs: number;
}

export const LIMITS: Limits = {
  connectMs: 10_000,
  answerMs: 4 * 60 * 60_000,
  bodyMs: 60_000,
  halfOpenMs: 60_000,
};

/** Limits are kept to within this. */
const LOOK_EVERY_MS = 1000;

/** Ends what it watches if it waits for too long at this instant of `performance.now`. */
export interface Watched {
  look(now: number): void;
}

export class Watch {
  /**
   * Places that are taken and left. A Set would do, and cost a fifth of a request: each table that it outgrows points to
   * the next, so that one old table keeps the requests of all later ones alive until the whole heap is swept.
   */
  readonly #places: (Watched | null)[] = [];
  readonly #free: number[] = [];
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | null = null;

  constructor({ connectMs, answerMs, bodyMs }: Limits) {
    this.#everyMs = Math.min(LOOK_EVERY_MS, connectMs, answerMs, bodyMs);
  }

  /** Looks after it until its place is given back. @returns the place. */
  add(watched: Watched): number {
    const place = this.#free.pop() ?? this.#places.length;
    this.#places[place] = watched;
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
    for (const watched of this.#places) watched?.look(now);
    if (this.#free.length === this.#places.length) this.close();
  }
}
