/**
 * Exact timers of cron triggers (api.md 4 "Cron"): one heap by instant and one sleeping fiber; only an instant that is
 * being told has a fiber of its own. An instant is not lost with its message: it is told until it was taken or another
 * timer took its place, and the scheduler's poll tells again whatever is armed in the past.
 */
import FlatQueue from "flatqueue";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Schedule from "effect/Schedule";
import type { TriggerEvent } from "../machines/trigger.ts";
import { Actors } from "./actors.ts";

/** What is armed for a trigger: the instant in ms since the epoch, and the schedule it came from. */
export interface Armed {
  readonly due: number;
  readonly schedule: string;
}

export class Timers extends Context.Service<
  Timers,
  {
    /** Tells the trigger `timer.elapsed` when `due` has come; replaces its former timer. */
    readonly arm: (triggerId: string, timer: Armed) => Effect.Effect<void>;
    /** Whatever timer the trigger has; with `timer`, that one alone, where no other took its place. */
    readonly disarm: (triggerId: string, timer?: Armed) => Effect.Effect<void>;
    /** What was armed last, elapsed or not: what a trigger's actor that left memory goes on with. */
    readonly armed: (triggerId: string) => Armed | null;
  }
>()("platform/actors/Timers") {}

const elapsed = ({ due }: Armed): TriggerEvent => ({ type: "timer.elapsed", due });

/** A sleep is cut into pieces of this length, so that a clock that was set is noticed (threats.md C14, C15). */
const LONGEST_SLEEP_MS = 60_000;

/** Between two messages of one instant: 100 ms doubling to 5 s. */
const TELL_AGAIN = Schedule.modifyDelay(Schedule.exponential("100 millis"), ({ duration }) =>
  Effect.succeed(Duration.min(duration, Duration.seconds(5))),
);

/** After so many timers that elapse at once others have their turn: the first rows are committed before the last is told. */
const TOLD_AT_A_TIME = 16;

export const timersLayer: Layer.Layer<Timers, never, Actors> = Layer.effect(
  Timers,
  Effect.gen(function* () {
    const actors = yield* Actors;
    const scope = yield* Effect.scope;
    const heap = new FlatQueue<string>();
    /** What counts: an entry of the heap whose instant is another is stale and dropped when it comes up. */
    const armed = new Map<string, Armed>();
    const earlier = yield* Queue.sliding<void>(1);

    const elapse = (id: string, timer: Armed) => {
      const tell = actors.trigger(id, elapsed(timer));
      const again = Effect.retry(tell, { while: () => armed.get(id) === timer, schedule: TELL_AGAIN });
      const told = Effect.catch(tell, (error) =>
        Effect.andThen(Effect.logWarning("a timer is told again", { trigger: id, error }), again),
      );
      return Effect.forkIn(Effect.ignore(told), scope);
    };
    const turn = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis;
      let told = 0;
      for (let at = heap.peekValue(); at !== undefined && at <= now; at = heap.peekValue()) {
        const id = heap.pop();
        const timer = id === undefined ? undefined : armed.get(id);
        if (id === undefined || timer?.due !== at) continue;
        yield* elapse(id, timer);
        told += 1;
        if (told % TOLD_AT_A_TIME === 0) yield* Effect.yieldNow;
      }
      // The clock went on while others had their turn.
      const wait = Math.min(
        (heap.peekValue() ?? Infinity) - (yield* Clock.currentTimeMillis),
        LONGEST_SLEEP_MS,
      );
      if (wait <= 0) return;
      yield* Effect.raceFirst(Effect.sleep(wait), Queue.take(earlier));
    });
    yield* Effect.forkScoped(Effect.forever(turn));

    return Timers.of({
      arm: (id, timer) =>
        Effect.suspend(() => {
          const first = heap.peekValue() ?? Infinity;
          armed.set(id, timer);
          heap.push(id, timer.due);
          return timer.due < first ? Effect.asVoid(Queue.offer(earlier, undefined)) : Effect.void;
        }),
      disarm: (id, timer) =>
        Effect.sync(() => {
          if (timer === undefined || armed.get(id) === timer) armed.delete(id);
        }),
      armed: (id) => armed.get(id) ?? null,
    });
  }),
);
