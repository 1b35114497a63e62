/**
 * Waiting that does not mistake a busy process for a silent server. A timer that is due while the event loop is blocked
 * fires before the loop reads what arrived meanwhile. On an overloaded machine it would end waits whose answer is
 * already here.
 *
 *  T1 A wait is measured in steps. A step begins only after the loop has reached the previous one and has read its
 *     sockets since, so a stall of any length costs one step.
 *  T2 A line of waiters makes progress. A waiter gives up if no waiter ahead of it was served for one wait's time, or
 *     if it has waited six times as long in total.
 */

/** The number of steps in a wait. More steps make a stall cheaper, but each one is a timer. */
const STEPS = 20;

/**
 * Calls `onExpiry` once the loop could have read an answer for that long (T1).
 *
 * @returns a function that ends the wait. After that, `onExpiry` is not called.
 */
export const patiently = (milliseconds: number, onExpiry: () => void): (() => void) => {
  let [left, isOver] = [STEPS, false];
  let timer: NodeJS.Timeout | null = null;
  const step = (): void => {
    if (isOver) return;
    left -= 1;
    // Arrived data is read between a timer and this callback.
    if (left < 0) setImmediate(() => isOver || onExpiry());
    // oxlint-disable-next-line no-restricted-globals -- beneath Effect: its own timers have the flaw that this one has not
    else timer = setTimeout(step, milliseconds / STEPS).unref();
  };
  step();
  return () => {
    isOver = true;
    if (timer !== null) clearTimeout(timer);
  };
};

/** The longest total wait in a moving line, in waits. */
const LONGEST_WAITS = 6;

interface Waiter {
  readonly resume: () => void;
  readonly refuse: (error: Error) => void;
  /** The line's step count at its arrival. */
  readonly cameAt: number;
}

/** A number of places and a queue for them, first come, first served. */
export class Line {
  readonly #waitMs: number;
  readonly #waiting: Waiter[] = [];
  #free: number;
  #steps = 0;
  /** The step at which a waiter was last served. */
  #servedAt = 0;
  #timer: NodeJS.Timeout | null = null;
  readonly #changed: (waiting: number) => void;

  /**
   * @param wait.ms how long a waiter waits while the line does not move
   * @param wait.changed is told how many wait, each time that their number changes
   */
  constructor(places: number, wait: { readonly ms: number; readonly changed: (waiting: number) => void }) {
    this.#free = places;
    this.#waitMs = wait.ms;
    this.#changed = wait.changed;
  }

  /** Takes a free place. False: no place is free, and the caller may `enter` the line. */
  enterAtOnce(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    this.#servedAt = this.#steps;
    return true;
  }

  /**
   * Resolves when the caller has a place. The caller returns it with `leave`. @throws Error if no place became free
   * (T2)
   */
  enter(): Promise<void> {
    if (this.enterAtOnce()) return Promise.resolve();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ resume: resolve, refuse: reject, cameAt: this.#steps });
    this.#changed(this.#waiting.length);
    if (this.#timer === null) this.#next();
    return promise;
  }

  leave(): void {
    this.#servedAt = this.#steps;
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else {
      this.#changed(this.#waiting.length);
      next.resume();
    }
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
      const waitedSteps = this.#steps - cameAt;
      return (isStuck && waitedSteps > STEPS) || waitedSteps > STEPS * LONGEST_WAITS;
    };
    // The first in line is the first to be late.
    while (this.#waiting[0] !== undefined && isLate(this.#waiting[0])) {
      this.#waiting.shift()?.refuse(new Error(`no connection became free within ${this.#waitMs} ms`));
      this.#changed(this.#waiting.length);
    }
    if (this.#waiting.length > 0) this.#next();
  }
}
