/**
 * The test clock and the scheduler of a simulated service. Everything that is ready runs before time moves; which of
 * several ready fibers runs first is drawn from the seed. A service's life ends between two of its steps as a process does
 * that is killed: what it had ready, and what it slept for, is forgotten, and no finalizer runs.
 *
 * Two times, as on a real machine: `elapsed` only rises and is what sleeps go by, `wall` is what clocks say and may be set
 * (threats.md C14, C15).
 */
import type * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { Scheduler } from "effect/Scheduler";
import type { Random } from "./random.ts";

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
  cancelled: boolean;
}

/** More steps than this without time moving on: something spins (threats.md I19). */
const STEPS_MAX = 200_000;
/** How often a fiber gets its turn out of its order. */
const OUT_OF_ORDER = 0.2;
const OPS_BEFORE_YIELD = 2048;

const NANOS = 1_000_000n;

export class SimulatedTime {
  /** ms since the simulation began. */
  elapsed = 0;
  /** Which life of the service runs. */
  life = 0;
  #offset: number;
  #tasks: (() => void)[] = [];
  #sleepers: Sleeper[] = [];
  readonly #random: Random;

  constructor(beginning: number, random: Random) {
    this.#offset = beginning;
    this.#random = random;
  }

  /** What a clock on the wall says, ms since the epoch. */
  get wall(): number {
    return this.#offset + this.elapsed;
  }

  setWall(by: number): void {
    this.#offset += by;
  }

  /** Nothing of the former life runs on. */
  begin(): void {
    this.life += 1;
    this.#tasks = [];
    this.#sleepers = [];
  }

  /** Runs what becomes ready within the next `ms`, until `stop` says so. @returns how much of it is left. */
  advance(ms: number, stop: () => boolean = () => false): number {
    const target = this.elapsed + ms;
    this.#runReady(stop);
    while (!stop()) {
      const next = this.#sleepers.at(-1);
      if (next === undefined || next.at > target) {
        this.elapsed = target;
        return 0;
      }
      this.#sleepers.pop();
      if (next.cancelled) continue;
      this.elapsed = Math.max(this.elapsed, next.at);
      next.wake();
      this.#runReady(stop);
    }
    return target - this.elapsed;
  }

  #runReady(stop: () => boolean): void {
    for (let steps = 0; this.#tasks.length > 0 && !stop(); steps += 1) {
      if (steps > STEPS_MAX) throw new Error("the service spins: time does not move on");
      const last = this.#tasks.length - 1;
      const at =
        last > 0 && this.#random.chance(OUT_OF_ORDER) ? this.#random.between(0, Math.min(last, 8)) : 0;
      const [task] = at === 0 ? [this.#tasks.shift()] : this.#tasks.splice(at, 1);
      task?.();
    }
  }

  scheduler(): Scheduler {
    const { life } = this;
    return {
      executionMode: "async",
      shouldYield: (fiber) => fiber.currentOpCount >= OPS_BEFORE_YIELD,
      makeDispatcher: () => ({
        scheduleTask: (task) => {
          if (life === this.life) this.#tasks.push(task);
        },
        flush: () => undefined,
      }),
    };
  }

  clock(): Clock.Clock {
    const { life } = this;
    const millis = () => this.wall;
    const nanos = () => BigInt(this.wall) * NANOS;
    const monotonic = () => BigInt(this.elapsed) * NANOS;
    return {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: monotonic,
      monotonicTimeNanos: Effect.sync(monotonic),
      sleep: (duration) => this.#sleep(Math.ceil(Duration.toMillis(duration)), life),
    };
  }

  #sleep(ms: number, life: number): Effect.Effect<void> {
    if (ms <= 0) return Effect.yieldNow;
    if (!Number.isFinite(ms)) return Effect.never;
    return Effect.callback<void>((resume) => {
      const sleeper: Sleeper = {
        at: this.elapsed + ms,
        cancelled: false,
        wake: () => resume(Effect.void),
      };
      if (life === this.life) this.#await(sleeper);
      return Effect.sync(() => {
        sleeper.cancelled = true;
      });
    });
  }

  /** Latest first; of two for one instant the former wakes first. */
  #await(sleeper: Sleeper): void {
    let low = 0;
    let high = this.#sleepers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sleepers[middle]?.at ?? 0) > sleeper.at) low = middle + 1;
      else high = middle;
    }
    this.#sleepers.splice(low, 0, sleeper);
  }
}
