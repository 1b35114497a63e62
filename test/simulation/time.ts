/**
 * The test clock and the scheduler of simulated processes. Everything that is ready runs before time moves; which of
 * several ready fibers runs first is drawn from the seed. A process ends between two of its steps as one does that is
 * killed: what it had ready, and what it slept for, is forgotten, and no finalizer runs. One that is frozen does nothing
 * until it is thawed, and then everything that became due meanwhile.
 *
 * Two times, as on a real machine: `elapsed` only rises and is what sleeps go by; a `WallClock` is what a machine's clock
 * says and may be set (threats.md C14, C15), each machine's apart from the others'.
 */
import type * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { Scheduler } from "effect/Scheduler";
import type { Random } from "./random.ts";

type Task = () => void;

interface Ready {
  readonly process: Process;
  readonly task: Task;
}

interface Sleeper {
  readonly at: number;
  readonly process: Process;
  readonly wake: Task;
  cancelled: boolean;
}

/** More steps than this without time moving on: something spins (threats.md I19). */
const STEPS_MAX = 200_000;
/** How often a fiber gets its turn out of its order. */
const OUT_OF_ORDER = 0.2;
const OPS_BEFORE_YIELD = 2048;

const NANOS = 1_000_000n;

/** What a machine's clock says. */
export class WallClock {
  readonly #time: SimulatedTime;
  #offset: number;

  constructor(time: SimulatedTime, beginning: number) {
    this.#time = time;
    this.#offset = beginning;
  }

  /** ms since the epoch. */
  get now(): number {
    return this.#offset + this.#time.elapsed;
  }

  set(by: number): void {
    this.#offset += by;
  }
}

/** One life of a service. */
export class Process {
  /** Among all lives. */
  readonly name: string;
  isDead = false;
  /** The work that became ready since it was frozen, or null if it is not frozen. */
  stalled: Ready[] | null = null;
  readonly scheduler: Scheduler;
  readonly clock: Clock.Clock;

  constructor(time: SimulatedTime, wall: WallClock) {
    time.lives += 1;
    this.name = `life_${time.lives}`;
    this.scheduler = {
      executionMode: "async",
      shouldYield: (fiber) => fiber.currentOpCount >= OPS_BEFORE_YIELD,
      makeDispatcher: () => ({
        scheduleTask: (task) => time.schedule({ process: this, task }),
        flush: () => undefined,
      }),
    };
    const millis = () => wall.now;
    const nanos = () => BigInt(wall.now) * NANOS;
    const monotonic = () => BigInt(time.elapsed) * NANOS;
    this.clock = {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: monotonic,
      monotonicTimeNanos: Effect.sync(monotonic),
      sleep: (duration) => time.sleep(Math.ceil(Duration.toMillis(duration)), this),
    };
  }

  get isFrozen(): boolean {
    return this.stalled !== null;
  }

  /** Whether what is asked of it is heard now. */
  get isUp(): boolean {
    return !this.isDead && !this.isFrozen;
  }
}

export class SimulatedTime {
  /** ms since the simulation began. */
  elapsed = 0;
  lives = 0;
  #ready: Ready[] = [];
  #sleepers: Sleeper[] = [];
  readonly #random: Random;
  /** Called when nothing is ready: whether something may be by now. It may take real time, never virtual one. */
  onIdle: () => boolean = () => false;
  /** Called when a process has ended. */
  onEnd: (process: Process) => void = () => undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  schedule(ready: Ready): void {
    const { process } = ready;
    if (!process.isDead) (process.stalled ?? this.#ready).push(ready);
  }

  /** No part of it continues to run. */
  end(process: Process): void {
    process.isDead = true;
    process.stalled = null;
    this.#ready = this.#ready.filter((ready) => ready.process !== process);
    this.#sleepers = this.#sleepers.filter((sleeper) => sleeper.process !== process);
    this.onEnd(process);
  }

  freeze(process: Process): void {
    if (process.isDead || process.isFrozen) return;
    process.stalled = this.#ready.filter((ready) => ready.process === process);
    this.#ready = this.#ready.filter((ready) => ready.process !== process);
  }

  thaw(process: Process): void {
    this.#ready.push(...(process.stalled ?? []));
    process.stalled = null;
  }

  /** Runs the work that becomes ready within the next `ms`, until `stop` says so. @returns the rest of the time. */
  advance(ms: number, stop: () => boolean = () => false): number {
    const target = this.elapsed + ms;
    do this.#runReady(stop);
    while (!stop() && this.onIdle());
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
      do this.#runReady(stop);
      while (!stop() && this.onIdle());
    }
    return target - this.elapsed;
  }

  #runReady(stop: () => boolean): void {
    for (let steps = 0; this.#ready.length > 0 && !stop(); steps += 1) {
      if (steps > STEPS_MAX) throw new Error("the service spins: time does not move on");
      const last = this.#ready.length - 1;
      const at =
        last > 0 && this.#random.chance(OUT_OF_ORDER) ? this.#random.between(0, Math.min(last, 8)) : 0;
      const [ready] = at === 0 ? [this.#ready.shift()] : this.#ready.splice(at, 1);
      ready?.task();
    }
  }

  sleep(ms: number, process: Process): Effect.Effect<void> {
    if (ms <= 0) return Effect.yieldNow;
    if (!Number.isFinite(ms)) return Effect.never;
    return Effect.callback<void>((resume) => {
      const sleeper: Sleeper = {
        at: this.elapsed + ms,
        process,
        cancelled: false,
        wake: () => resume(Effect.void),
      };
      if (!process.isDead) this.#await(sleeper);
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
