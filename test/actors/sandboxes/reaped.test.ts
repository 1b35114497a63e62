/**
 * An idle actor leaves memory, and a message arrives at that very moment. Which of the two comes first is up to the
 * scheduler, so the simulation's scheduler tries many orders.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Scheduler } from "effect/Scheduler";
import { describe, expect, it } from "vitest";
import { Actors } from "../../../src/services/actors.ts";
import { actorLayer, actorsLayer, singleRunner } from "../../../src/actors/cluster.ts";
import { startActor } from "../../../src/actors/host.ts";
import { volatileMemory } from "../../../src/actors/volatile.ts";
import { account } from "../../../src/machines/account.ts";
import { Random } from "../../simulation/random.ts";
import { Process, SimulatedTime, WallClock } from "../../simulation/time.ts";

/** The cluster looks for idle actors as often as this, ms. */
const IDLE_MS = 10_000;
/** The message to each of them comes one turn of the scheduler later than the one before. */
const IDS = Array.from({ length: 20 }, (_, id) => id);
const SIGNAL = { type: "slot.freed" } as const;

/** Account actors whose command takes some ms. */
const accounts = (drained: () => void) =>
  actorLayer(
    "account",
    (id) =>
      startActor({
        id,
        machine: account,
        memory: volatileMemory(account.start({})),
        handlers: {
          drainQueue: {
            perform: () =>
              Effect.sync(() => {
                drained();
                return { type: "drain.finished", more: false } as const;
              }).pipe(Effect.delay(5)),
          },
          pause: { perform: () => Effect.never },
        },
        mailbox: 64,
        restarts: { restarts: 0, withinMs: 1000 },
      }),
    { maxIdleMs: IDLE_MS, again: SIGNAL },
  ).pipe(Layer.provideMerge(actorsLayer), Layer.provideMerge(singleRunner));

/** Each actor is told twice, the second time while it leaves memory. @returns how often the actors did their work. */
const drainsOf = (seed: number): number => {
  const time = new SimulatedTime(new Random(seed, "schedule"));
  const process = new Process(time, new WallClock(time, 0));
  const surroundings = Context.make(Scheduler, process.scheduler).pipe(
    Context.add(Clock.Clock, process.clock),
  );
  let drains = 0;
  const program = Effect.gen(function* () {
    const actors = Context.get(yield* Layer.build(accounts(() => (drains += 1))), Actors);
    const work = Effect.fnUntraced(function* (id: number) {
      yield* actors.account(`account ${id}`, SIGNAL);
      // Due during the freeze, as is the look for idle actors.
      yield* Effect.sleep(IDLE_MS * 1.9);
      yield* Effect.replicateEffect(Effect.yieldNow, id);
      yield* actors.account(`account ${id}`, SIGNAL);
    });
    yield* Effect.forEach(IDS, work, { concurrency: "unbounded" });
    return yield* Effect.never;
  });
  Effect.runForkWith(surroundings)(Effect.scoped(program));
  time.advance(IDLE_MS * 1.8);
  time.freeze(process);
  time.advance(IDLE_MS * 1.8);
  time.thaw(process);
  time.advance(1_000);
  return drains;
};

describe("an idle actor that gets a message while it leaves memory", () => {
  it("does the work that the message asks for", () => {
    const seeds = Array.from({ length: 20 }, (_, seed) => seed);
    expect(seeds.filter((seed) => drainsOf(seed) < 2 * IDS.length)).toEqual([]);
  });
});
