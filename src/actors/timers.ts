/**
 * The timers of this node's cron triggers (api.md 4 "Cron"): one heap by instant (`schedules.ts`) and one sleeping
 * fiber. When a timer elapses, it tells its trigger's actor to look. A timer has a fiber of its own only while it
 * delivers that message.
 *
 *  N1 A timer is told on the node where the actor lives. If the actor has moved away, the timer stays silent here.
 *  N2 A failed message is retried until it arrives or the timer is armed again. If a message is lost without an error,
 *     the scheduler's poll repeats it.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Schedule from "effect/Schedule";
import type { NextInstant } from "../machines/trigger.ts";
import { Actors, Placement } from "../services/actors.ts";
import { Schedules, type Scheduled } from "./schedules.ts";
import type { Pauses } from "../ground/backoff.ts";

export class Timers extends Context.Service<
  Timers,
  {
    /**
     * When this process began to watch triggers, in ms. Anything due before that was missed by a downtime (api.md 4).
     */
    readonly since: number;
    /** The entries that wait on this node. Only the scheduler adds and removes them. */
    readonly schedules: Schedules;
    /** Tells the timers to check the heap: it may hold an entry that is due earlier. */
    readonly changed: Effect.Effect<void>;
    /** Tells the trigger's actor `timer.elapsed` at the instant. Replaces the trigger's former timer. */
    readonly arm: (triggerId: string, next: NextInstant) => Effect.Effect<void>;
    /** Repeats the message to triggers that were told up to this instant, in ms, and were not armed since. */
    readonly tellAgain: (until: number) => Effect.Effect<void>;
  }
>()("platform/actors/Timers") {}

/** The longest sleep. Longer waits are split, so that a change of the clock is noticed (threats.md C14, C15). */
export const LONGEST_SLEEP_MS = 60_000;

/** Pause between two messages of one timer. */
export const TELL_PAUSES: Pauses = { firstMs: 100, longestMs: 5_000 };
const TELL_AGAIN = Schedule.modifyDelay(Schedule.exponential(TELL_PAUSES.firstMs), ({ duration }) =>
  Effect.succeed(Duration.min(duration, Duration.millis(TELL_PAUSES.longestMs))),
);

/**
 * After this many timers that elapse together, other fibers run: the first rows are committed before the last timer is
 * told.
 */
const TOLD_AT_A_TIME = 16;

export const timersLayer: Layer.Layer<Timers, never, Actors | Placement> = Layer.effect(
  Timers,
  Effect.gen(function* () {
    const actors = yield* Actors;
    const placement = yield* Placement;
    const scope = yield* Effect.scope;
    const since = yield* Clock.currentTimeMillis;
    const schedules = new Schedules();
    const earlier = yield* Queue.sliding<void>(1);
    const change = Effect.asVoid(Queue.offer(earlier, undefined));

    const elapse = (timer: Scheduled) => {
      const { id, rangAt } = timer;
      const isSame = () => timer.rangAt === rangAt && schedules.get(id) === timer && placement.isHere(id);
      const tell = Effect.suspend(() =>
        isSame() ? Effect.asVoid(actors.trigger(id, { type: "timer.elapsed" })) : Effect.void,
      );
      const delivery = Effect.catch(tell, (error) =>
        Effect.andThen(
          Effect.logWarning("a timer could not be delivered; trying again", { trigger: id, error }),
          Effect.retry(tell, TELL_AGAIN),
        ),
      );
      return Effect.forkIn(Effect.ignore(delivery), scope);
    };
    const turn = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis;
      let count = 0;
      for (let timer = schedules.take(now); timer !== null; timer = schedules.take(now)) {
        yield* elapse(timer);
        count += 1;
        if (count % TOLD_AT_A_TIME === 0) yield* Effect.yieldNow;
      }
      // The clock went on while other fibers ran.
      const wait = Math.min(schedules.first - (yield* Clock.currentTimeMillis), LONGEST_SLEEP_MS);
      if (wait <= 0) return;
      yield* Effect.raceFirst(Effect.sleep(wait), Queue.take(earlier));
    });
    yield* Effect.forkScoped(Effect.forever(turn));

    return Timers.of({
      since,
      schedules,
      changed: change,
      arm: (id, next) =>
        Effect.suspend(() => {
          const { first } = schedules;
          schedules.arm(id, next);
          return next.due < first ? change : Effect.void;
        }),
      tellAgain: (until) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          Effect.forEach(schedules.takeAgain(until, now), elapse, { discard: true }),
        ),
    });
  }),
);
