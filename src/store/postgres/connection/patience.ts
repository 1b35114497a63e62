/**
 * Waiting that does not mistake a busy process for a silent server. A timer that falls due while the event loop stands still fires
 * before the loop reads what came meanwhile: on a starved machine it ends waits whose answer is already there.
 *
 *  T1 A wait is measured in steps. Each begins when the loop has come to the step before it, and looked at its sockets since, so a
 *     stall of any length costs one step.
 *  T2 A line of waiters moves: whoever waits in it gives up when nobody in front of it was served for as long as one may wait, or
 *     when it has waited six times as long in all.
 */

/** Steps of a wait. More make a stall cheaper, and each is a timer. */
const STEPS = 20;

/**
 * Calls `expired` once the loop could have read an answer for so long (T1).
 *
 * @returns what ends the wait; after it `expired` is not called.
 */
export const patiently = (milliseconds: number, expired: () => void): (() => void) => {
  let [left, isOver] = [STEPS, false];
  let timer: NodeJS.Timeout | null = null;
  const step = (): void => {
    if (isOver) return;
    left -= 1;
    // What is there to read is read between a timer and this.
    if (left < 0) setImmediate(() => isOver || expired());
    // oxlint-disable-next-line no-restricted-globals -- beneath Effect: its own timers have the flaw that this one has not
    else timer = setTimeout(step, milliseconds / STEPS).unref();
  };
  step();
  return () => {
    isOver = true;
    if (timer !== null) clearTimeout(timer);
  };
};

/** How many waits long a whole wait in a moving line may be. */
const LONGEST_WAITS = 6;

interface Waiter {
  readonly resume: () => void;
  readonly refuse: (error: Error) => void;
  /** Steps of the line when it came. */
  readonly cameAt: number;
}

/** A number of places and a line for them, first come, first served. */
export class Line {
  readonly #waitMs: number;
  readonly #waiting: Waiter[] = [];
  #free: number;
  #steps = 0;
  /** The step at which somebody was served last. */
  #servedAt = 0;
  #timer: NodeJS.Timeout | null = null;

  /** @param waitMs how long a waiter bears that nobody is served */
  constructor(places: number, waitMs: number) {
    this.#free = places;
    this.#waitMs = waitMs;
  }

  /** Resolves when a place is the caller's, who gives it back with `leave`. @throws Error when none came (T2) */
  enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      this.#servedAt = this.#steps;
      return Promise.resolve();
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ resume: resolve, refuse: reject, cameAt: this.#steps });
    if (this.#timer === null) this.#next();
    return promise;
  }

  leave(): void {
    this.#servedAt = this.#steps;
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next.resume();
  }

  #next(): void {
    // oxlint-disable-next-line no-restricted-globals -- as above
    this.#timer = setTimeout(() => setImmediate(() => this.#step()), this.#waitMs / STEPS).unref();
  }

  #step(): void {
    this.#timer = null;
    this.#steps += 1;
    const isStuck = this.#steps - this.#servedAt > STEPS;
    const isLate = ({ cameAt }: Waiter): boolean => {
      const waited = this.#steps - cameAt;
      return (isStuck && waited > STEPS) || waited > STEPS * LONGEST_WAITS;
    };
    // Who came first is late first.
    while (this.#waiting[0] !== undefined && isLate(this.#waiting[0])) {
      this.#waiting.shift()?.refuse(new Error(`no connection became free within ${this.#waitMs} ms`));
    }
    if (this.#waiting.length > 0) this.#next();
  }
}
