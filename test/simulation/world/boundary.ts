/**
 * What stands between the service and the world: every call of a port passes here, before it takes effect and after it has.
 * At both places it is written to the trace, may take its time, may fail, and the service may die (threats.md "Steps before
 * and after which the process is killed").
 */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import type { Mark } from "../marks.ts";
import type { Random } from "../random.ts";
import type { Process, SimulatedTime } from "../time.ts";

/** What goes wrong with one call: it fails before it took effect, or after, its outcome unknown to the caller. */
export type CallFault = "refused" | "unknown";

export interface BoundaryParts {
  readonly time: SimulatedTime;
  readonly random: Random;
}

export interface Call {
  /** Who calls. */
  readonly process: Process;
  readonly port: string;
  readonly operation: string;
  readonly about: string;
  readonly given: readonly unknown[];
  /** Writes, and what else is worth a line. */
  readonly isTraced: boolean;
  /** The error of a call that goes wrong; null: it cannot. */
  readonly failure: (() => unknown) | null;
}

/** The share of calls that take their time, and the longest such time, ms. */
const SLOW = 0.08;
const SLOWEST_MS = 40;
const YIELDING = 0.3;
/** A late call takes effect after so long, ms. */
const LATE_MIN_MS = 60;
const LATE_MAX_MS = 10_000;

/** Calls that a store which is slow takes its time for, on their way there and back. */
export interface Slowness {
  /** With their ports, as `store.Fires.get`. */
  readonly calls: ReadonlySet<string>;
  /** Its own, so that no other draw moves. */
  readonly random: Random;
}

/** How long one way of a slow call takes at most, ms: less than what checkers allow for late work. */
const SLOW_WAY_MAX_MS = 800;

/** The names of the places where a call may go wrong. */
interface Points {
  readonly name: string;
  readonly before: string;
  readonly after: string;
  readonly refused: string;
  readonly unknown: string;
  readonly late: string;
}

/** By port and operation. They are made once: a run asks for them at every call. */
const known = new Map<string, Map<string, Points>>();

const pointsOf = ({ port, operation }: Call): Points => {
  const ofPort = known.get(port) ?? new Map<string, Points>();
  known.set(port, ofPort);
  const points = ofPort.get(operation);
  if (points !== undefined) return points;
  const name = `${port}.${operation}`;
  const made: Points = {
    name,
    before: `before ${name}`,
    after: `after ${name}`,
    refused: `refused ${name}`,
    unknown: `unknown ${name}`,
    late: `late ${name}`,
  };
  ofPort.set(operation, made);
  return made;
};

/** The effect of a call when it reaches the world. `alone`: its caller may not be there to see it. */
interface Arrival<A, E, R> {
  readonly arrived: () => Effect.Effect<A, E, R>;
  readonly alone: () => Effect.Effect<A, E, R>;
}

/** The observer of a call that no checker looks at. */
const unseen = (_exit: Exit.Exit<unknown, unknown>): void => undefined;

export class Boundary {
  readonly trace: string[] = [];
  readonly hits = new Map<string, number>();
  /** Calls that reached the world. */
  readonly calls = new Map<string, number>();
  /** Shares of calls that go wrong, by port. */
  faults: Readonly<Record<string, number>> = {};
  /** A port that cannot be had at all, until this instant of `elapsed`. */
  readonly outages = new Map<string, number>();
  /** Null: no call is slow but by chance. */
  slowness: Slowness | null = null;
  /** Called with every effect on the world. */
  onEffect: (call: Call) => void = () => undefined;
  /** Called before a call takes effect; the function that it returns is called after it. */
  onCall: (call: Call) => (exit: Exit.Exit<unknown, unknown>) => void = () => () => undefined;
  /** Called when a marked call goes wrong. `forMs`: how long it disturbs the world, 0 if absent. */
  onMarked: (forMs?: number) => void = () => undefined;
  /** How many times it is passed until it goes wrong, by point. */
  readonly #marks = new Map<string, number>();
  #crashIn = Infinity;
  #crashesAt: "all" | "traced" = "all";
  readonly #time: SimulatedTime;
  readonly #random: Random;

  constructor({ time, random }: BoundaryParts) {
    this.#time = time;
    this.#random = random;
  }

  note(line: string): void {
    this.trace.push(`${this.#time.elapsed} ${line}`);
  }

  hit(point: string): void {
    this.hits.set(point, (this.hits.get(point) ?? 0) + 1);
  }

  /** The service dies at the so-many-th place from here on; of all places, or of those around effects that are traced. */
  armCrash(places: number, of: "all" | "traced"): void {
    this.#crashIn = places;
    this.#crashesAt = of;
  }

  /** The marked calls fail from this moment on. */
  mark(marks: readonly Mark[]): void {
    for (const { point, nth } of marks) this.#marks.set(point, nth);
  }

  /** No crash is to come any more, and nothing is marked. */
  disarm(): void {
    this.#crashIn = Infinity;
    this.#marks.clear();
  }

  /** Whether this is the time that was marked. */
  #isMarked(point: string): boolean {
    const left = this.#marks.get(point);
    if (left === undefined) return false;
    if (left > 1) {
      this.#marks.set(point, left - 1);
      return false;
    }
    this.#marks.delete(point);
    this.note(`marked ${point}`);
    this.onMarked();
    return true;
  }

  /** @returns whether the process lives on. */
  pass(place: string, isTraced: boolean, process: Process): boolean {
    if (process.isDead) return false;
    if (isTraced || this.#crashesAt === "all") this.#crashIn -= 1;
    if (this.#crashIn > 0 && !this.#isMarked(place)) return true;
    this.hit(`crash ${place}`);
    this.note(`crash ${place}`);
    this.#time.end(process);
    this.#crashIn = Infinity;
    return false;
  }

  around<A, E, R>(call: Call, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      if (call.process.isDead) return Effect.never;
      const fault = this.#faultOf(call);
      return this.#slowly(() => this.#taken(call, effect, fault));
    });
  }

  /** The call reaches the world. */
  #taken<A, E, R>(
    call: Call,
    effect: Effect.Effect<A, E, R>,
    fault: CallFault | null,
  ): Effect.Effect<A, E, R> {
    const { process, isTraced } = call;
    const { before, after } = pointsOf(call);
    if (!this.pass(before, isTraced, process)) return Effect.never;
    if (fault === "refused") return this.#failed<E>(call, fault);
    let look = unseen;
    let isSeen = false;
    const seen = (exit: Exit.Exit<A, E>): void => {
      if (isSeen) return;
      isSeen = true;
      look(exit);
      if (!process.isDead) this.#happened(call, exit);
    };
    // Looked at when it arrives: others write while it is on its way.
    const arrived = (): Effect.Effect<A, E, R> => {
      if (isTraced) look = this.onCall(call);
      return effect;
    };
    const left = (exit: Exit.Exit<A, E>): Effect.Effect<A, E> => {
      seen(exit);
      if (!this.pass(after, isTraced, process)) return Effect.never;
      if (fault === "unknown") return this.#failed<E>(call, fault);
      return this.#slowly(() => this.#delayed(call, () => exit));
    };
    const alone = () => Effect.onExit(Effect.suspend(arrived), (exit) => Effect.sync(() => seen(exit)));
    return Effect.matchCauseEffect(this.#late(call, { arrived, alone }), {
      onFailure: (cause) => left(Exit.failCause(cause)),
      onSuccess: (value) => left(Exit.succeed(value)),
    });
  }

  #happened(call: Call, exit: Exit.Exit<unknown, unknown>): void {
    const { name } = pointsOf(call);
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    if (call.isTraced) this.note(`${name} ${call.about} ${Exit.isSuccess(exit) ? "ok" : "failed"}`);
    this.onEffect(call);
  }

  #failed<E>(call: Call, fault: CallFault): Effect.Effect<never, E> {
    const point = pointsOf(call)[fault];
    this.hit(point);
    this.note(`${point} ${call.about}`);
    return this.#slowly(() => Effect.fail((call.failure ?? (() => null))() as E));
  }

  #faultOf(call: Call): CallFault | null {
    const { port, failure } = call;
    if (failure === null) return null;
    const { refused, unknown } = pointsOf(call);
    if (this.#isMarked(refused)) return "refused";
    if (this.#isMarked(unknown)) return "unknown";
    if ((this.outages.get(port) ?? 0) > this.#time.elapsed) return "refused";
    const share = this.faults[port] ?? 0;
    if (share === 0 || !this.#random.chance(share)) return null;
    return this.#random.chance(0.5) ? "unknown" : "refused";
  }

  /** A late call takes effect later, also where its caller does not wait for it any longer. A dead process' never does. */
  #late<A, E, R>(call: Call, { arrived, alone }: Arrival<A, E, R>): Effect.Effect<A, E, R> {
    const { process, about } = call;
    const { name, late } = pointsOf(call);
    if (this.slowness?.calls.has(name) === true)
      return this.#onItsWay(this.#delayed(call, () => (process.isDead ? Effect.never : alone())));
    if (!this.#isMarked(late)) return arrived();
    this.hit(late);
    const arriving = Effect.suspend(() => {
      if (process.isDead) return Effect.never;
      this.note(`arrives ${name} ${about}`);
      this.onMarked();
      return alone();
    });
    const travel = this.#random.between(LATE_MIN_MS, LATE_MAX_MS);
    // Others wait for its locks until it arrives.
    this.onMarked(travel);
    return this.#onItsWay(Effect.andThen(Effect.sleep(travel), arriving));
  }

  /** It takes effect also where its caller was interrupted meanwhile. */
  #onItsWay<A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.flatMap(Effect.forkDetach(call), Fiber.join);
  }

  /** One way of a slow call; of others, none. */
  #delayed<A, E, R>(call: Call, next: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const { slowness } = this;
    if (slowness === null || !slowness.calls.has(pointsOf(call).name)) return next();
    const travel = slowness.random.between(0, SLOW_WAY_MAX_MS);
    return Effect.andThen(Effect.sleep(travel), Effect.suspend(next));
  }

  /** Others have their turn at every call, now and then for long. */
  #slowly<A, E, R>(next: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const draw = this.#random.fraction();
    if (draw < SLOW)
      return Effect.andThen(Effect.sleep(this.#random.between(1, SLOWEST_MS)), Effect.suspend(next));
    return draw < SLOW + YIELDING ? Effect.andThen(Effect.yieldNow, Effect.suspend(next)) : next();
  }
}
