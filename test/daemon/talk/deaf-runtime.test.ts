/** A turn that a person stops ends, also if the runtime goes on as if it had heard nothing (E5 of daemon/agent/steering.ts). */
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { expect, it } from "vitest";
import type { AdapterSteering } from "../../../daemon/adapters/adapter.ts";
import { Attachments } from "../../../daemon/agent/attachments.ts";
import { makeSteering, Steering } from "../../../daemon/agent/steering.ts";
import { startFeed } from "../support/feed.ts";

const MESSAGE = { id: "a", sent_at: 1, text: "x", model: null, agent: null };

/** A runtime that takes messages and interrupts, and rests when it is told to. */
const start = (seen: { isBusy: boolean; restarts: number }) => {
  const { feed } = startFeed();
  const adapter = {
    hand: () => Effect.succeed({ outcome: "accepted" }),
    interrupt: () => Effect.void,
    look: () => Effect.sync(() => ({ isBusy: seen.isBusy, hasBegun: true })),
  } as unknown as AdapterSteering;
  const steering = new Steering({
    adapter: { steering: adapter },
    report: { serving: true, turn: { active: null } },
    attachments: new Attachments("/nonexistent"),
    feed,
    log: () => undefined,
    session: { sessionId: "s", agentName: "default", model: null },
    restart: Effect.sync(() => void (seen.restarts += 1)),
  });
  steering.prepared();
  return steering;
};

const stopped = (seen: { isBusy: boolean; restarts: number }, rests: boolean) =>
  Effect.gen(function* () {
    const steering = start(seen);
    yield* makeSteering(steering);
    expect(yield* steering.handle("messages", MESSAGE)).toEqual({
      done: { outcome: "accepted", turn: 1 },
    });
    expect(yield* steering.handle("interrupt", { turn: 1 })).toEqual({
      done: { interrupted: true },
    });
    // Once more by the person, which begins no new time.
    yield* TestClock.adjust("3 seconds");
    yield* steering.handle("interrupt", { turn: 1 });
    if (rests) seen.isBusy = false;
    yield* TestClock.adjust("2900 millis");
    expect(seen.restarts).toBe(0);
    yield* TestClock.adjust("100 millis");
    return steering;
  }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise);

it("ends the process of a runtime that goes on for six seconds, and says why", async () => {
  const seen = { isBusy: true, restarts: 0 };
  const steering = await stopped(seen, false);
  expect(seen.restarts).toBe(1);
  expect(steering.cutEnd()).toMatchObject({ error: { code: "agent_not_stopping" } });
  expect(steering.cutEnd()).toMatchObject({ error: { code: "runtime_ended" } });
});

it("leaves a runtime alone that stops", async () => {
  const seen = { isBusy: true, restarts: 0 };
  const steering = await stopped(seen, true);
  expect([seen.restarts, steering.cutEnd().error?.code]).toEqual([0, "runtime_ended"]);
});
