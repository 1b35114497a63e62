/**
 * The one runner of background duties (duties.ts): a round on the timer, or early at the signal, for as long as the scope lives.
 *
 *  D1 A database outage is waited out. A crash is logged and counted, and the next round comes as usual.
 *  D2 Rounds of one duty do not overlap.
 *  D3 A signal is listened for from before a round: the next round sees what is committed during this one.
 *  D4 The last run of each duty is in this process's memory: when it ended, how long it took, whether a part of it crashed.
 *  D5 A duty is late if its round takes far longer than its period, or if its last round crashed as a whole. A part that
 *     crashed is one project's or session's trouble, and does not make the service unready: `/readyz` and the metrics tell of it.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type * as Scope from "effect/Scope";
import { waitOutOutage } from "../store/ports/outage.ts";
import type { StoreError } from "../store/ports/journal.ts";
import { Pause } from "../ground/pause.ts";
import { DUTIES, DUTY_NAMES, type DutyName } from "./duties.ts";

/** How many of its periods a round may take. */
const LATE_PERIODS = 10;
/** How long every round may take, ms: after a start, recovery loads all that is live. */
const LATE_MS = 5 * 60_000;

export interface LastRun {
  /** Ms since the epoch. */
  readonly endedAt: number;
  readonly tookMs: number;
  /** The round or a part of it crashed. */
  readonly failed: boolean;
}

/** What this process knows of its duties (D4). */
export class RunRecord {
  readonly #runs = new Map<DutyName, LastRun>();
  readonly #failures = new Map<DutyName, number>();
  /** When the rounds under way began. */
  readonly #begun = new Map<DutyName, number>();
  readonly #broken = new Set<DutyName>();

  /** Null before the end of the first round. */
  lastRun(name: DutyName): LastRun | null {
    return this.#runs.get(name) ?? null;
  }

  /** Crashes of rounds and of their parts since the start of this process. */
  failures(name: DutyName): number {
    return this.#failures.get(name) ?? 0;
  }

  /** The duties that do not do their work in time (D5). */
  late(now: number, periods: ReadonlyMap<DutyName, number>): readonly DutyName[] {
    return DUTY_NAMES.filter((name) => {
      const lateAfterMs = Math.max(LATE_MS, LATE_PERIODS * (periods.get(name) ?? 0));
      return this.#broken.has(name) || now - (this.#begun.get(name) ?? now) > lateAfterMs;
    });
  }

  /** The duties whose last round crashed, in whole or in part. */
  failed(): readonly DutyName[] {
    return DUTY_NAMES.filter((name) => this.#runs.get(name)?.failed === true);
  }

  began(name: DutyName, now: number): void {
    this.#begun.set(name, now);
  }

  ended(name: DutyName, run: LastRun): void {
    this.#runs.set(name, run);
  }

  /** The round is over. `isWhole`: it did not crash as a whole. */
  left(name: DutyName, isWhole: boolean): void {
    this.#begun.delete(name);
    if (isWhole) this.#broken.delete(name);
    else this.#broken.add(name);
  }

  crashed(name: DutyName): void {
    this.#failures.set(name, this.failures(name) + 1);
  }
}

/** One for each process; a test provides its own. */
export const DutyRuns = Context.Reference<RunRecord>("platform/services/DutyRuns", {
  defaultValue: () => new RunRecord(),
});

/** A part of a round, or work that a round began: an outage is waited out, and a crash stays in this part (D1). */
export const dutyPart = <E, R>(
  name: DutyName,
  effect: Effect.Effect<void, E | StoreError, R>,
): Effect.Effect<void, Exclude<E, StoreError>, R> =>
  Effect.catchDefect(waitOutOutage(name, effect), (defect) =>
    Effect.flatMap(DutyRuns, (runs) => {
      runs.crashed(name);
      return Effect.annotateLogs(Effect.logError("a background duty crashed", defect), {
        work: name,
      });
    }),
  );

/** One round, with its place in the record (D4). */
export const dutyRound = <E, R>(
  name: DutyName,
  effect: Effect.Effect<void, E | StoreError, R>,
): Effect.Effect<void, Exclude<E, StoreError>, R> =>
  Effect.gen(function* () {
    const runs = yield* DutyRuns;
    const begunAt = yield* Clock.currentTimeMillis;
    const failures = runs.failures(name);
    runs.began(name, begunAt);
    let isWhole = true;
    const guardedEffect = Effect.tapDefect(effect, () => Effect.sync(() => (isWhole = false)));
    yield* Effect.onExit(dutyPart(name, guardedEffect), () => Effect.sync(() => runs.left(name, isWhole)));
    const endedAt = yield* Clock.currentTimeMillis;
    runs.ended(name, { endedAt, tookMs: endedAt - begunAt, failed: runs.failures(name) > failures });
  });

export interface Rounds<R, R2 = never> {
  /** One round. The next round retries work that this one could not do. */
  readonly round: Effect.Effect<void, StoreError, R>;
  /** The first round waits for this. Without it, the first round starts at once. */
  readonly first?: "a period" | Effect.Effect<unknown, never, R2>;
  /** The row's period. */
  readonly periodMs: number;
  /** Completes when the next round comes early. */
  readonly signal?: Effect.Effect<unknown, never, R2>;
}

/** A duty whose own wait takes the place of period and signal. */
export interface WaitingRounds<R, R2 = never> extends Pick<Rounds<R, R2>, "round" | "first"> {
  readonly wait: Effect.Effect<unknown, never, R2>;
}

/** A restored copy begins with a pause, in which it does nothing outside by itself. */
const unlessPaused = <E, R>(name: DutyName, round: Effect.Effect<void, E, R>): Effect.Effect<void, E, R> =>
  "actsOutside" in DUTIES[name] ? Effect.flatMap(Pause, ({ isOn }) => (isOn ? Effect.void : round)) : round;

/** Runs a duty in the caller's scope. */
export const runDuty = <R, R2 = never>(
  name: DutyName,
  options: Rounds<R, R2> | WaitingRounds<R, R2>,
): Effect.Effect<void, never, R | R2 | Scope.Scope> => {
  const round = dutyRound(name, unlessPaused(name, options.round));
  const rounds = Effect.forever(
    "wait" in options
      ? Effect.andThen(round, options.wait)
      : options.signal === undefined
        ? Effect.andThen(round, Effect.sleep(options.periodMs))
        : withSignal(round, options.signal, options.periodMs),
  );
  const { first = Effect.void } = options;
  const begin = first === "a period" ? Effect.sleep("periodMs" in options ? options.periodMs : 0) : first;
  return Effect.asVoid(Effect.forkScoped(Effect.andThen(begin, rounds)));
};

/** One round and what follows it: the period or the signal (D3). */
const withSignal = <R, R2>(
  round: Effect.Effect<void, never, R>,
  signal: Effect.Effect<unknown, never, R2>,
  periodMs: number,
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const listening = yield* Effect.forkScoped(signal, { startImmediately: true });
      yield* round;
      yield* Effect.raceFirst(Effect.sleep(periodMs), Fiber.join(listening));
    }),
  );
