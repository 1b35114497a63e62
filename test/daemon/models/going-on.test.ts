/** A turn that goes on with another agent, on its way through the daemon (daemon/agent/steering.ts, E6). */
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { afterEach, describe, expect, test } from "vitest";
import type { AdapterSteering } from "../../../daemon/adapters/adapter.ts";
import { Attachments } from "../../../daemon/agent/attachments.ts";
import { Steering } from "../../../daemon/agent/steering.ts";
import type { TurnEnd } from "../../../daemon/report.ts";
import { item, startFeed } from "../support/feed.ts";
import { POLL } from "../support/steered.ts";

const refused: TurnEnd = {
  state: "failed",
  error: { code: "model_out_of_credit", message: "Pay. It said: Payment required" },
};
const message = { id: "a", sent_at: 1, text: "x", model: null, agent: null };

let running: readonly Fiber.Fiber<never>[] = [];
afterEach(async () => {
  for (const fiber of running) await Effect.runPromise(Fiber.interrupt(fiber));
  running = [];
});

/** An agent that plans, whose turns go on with one that works, and a runtime that rests after each message. */
const start = async () => {
  const { feed, versions } = startFeed();
  const again: string[] = [];
  const runtime: AdapterSteering = {
    hand: () => Effect.succeed({ outcome: "accepted" }),
    again: (_, { model }) => Effect.sync(() => (again.push(model), { outcome: "accepted" as const })),
    look: () => Effect.succeed({ isBusy: false, hasBegun: true }),
    interrupt: () => Effect.void,
    answer: () => Effect.succeed(true),
    offers: () => Effect.succeed({ models: [], agents: [], default_model: null }),
    modes: () => ["plan", "build"],
  };
  const steering = new Steering({
    adapter: { steering: runtime },
    report: { serving: true, turn: { active: null } },
    attachments: new Attachments("/nonexistent"),
    feed,
    log: () => undefined,
    session: { sessionId: "s", agentName: "plan", model: "x/first" },
    planning: { plan: { mode: "plan", next: ["build"] }, own: "plan" },
    fallback: [{ name: "second", model: "x/second", mode: "build" }],
    restart: Effect.void,
  });
  steering.prepared();
  const call = (name: "messages" | "interrupt", body: unknown) =>
    Effect.runPromise(steering.handle(name, body));
  expect(await call("messages", message)).toEqual({ done: { outcome: "accepted", turn: 1 } });
  const ends: TurnEnd[] = [];
  const fails = () => steering.fallsBack(refused, (end) => void ends.push(end));
  const run = (...duties: readonly ("goOnward" | "watch")[]) =>
    (running = duties.map((duty) => Effect.runFork(steering[duty])));
  const said = () => versions().map(({ kind, content }) => `${kind} ${JSON.stringify(content)}`);
  return { steering, feed, call, fails, ends, run, said, again };
};

describe("a turn whose model refuses", () => {
  test("does not go on once a person has stopped it", async () => {
    const { call, fails, said } = await start();
    expect(await call("interrupt", { turn: 1 })).toEqual({ done: { interrupted: true } });
    expect(fails()).toBe(false);
    expect(said()).toEqual([]);
  });

  test("is not given again if a person stops it meanwhile, and ends as interrupted", async () => {
    const { call, fails, ends, run, feed, again } = await start();
    expect(fails()).toBe(true);
    expect(await call("interrupt", { turn: 1 })).toEqual({ done: { interrupted: true } });
    run("goOnward");
    await expect.poll(() => feed.turnsEnded, POLL).toBe(1);
    expect([ends, again]).toEqual([[{ state: "interrupted", error: null }], []]);
  });

  test("goes on in the mode of the next agent, so that it ends without a plan if that one does not plan", async () => {
    const { steering, fails, run, feed, said, again } = await start();
    expect(fails()).toBe(true);
    run("goOnward");
    await expect.poll(() => again, POLL).toEqual(["x/second"]);
    steering.observer.item(item("a", { role: "user", message_id: "a", turn_id: "a" }));
    steering.observer.item(item("b", { turn_id: "a" }));
    expect(steering.fallsBack({ state: "completed", error: null }, () => undefined)).toBe(false);
    steering.turnEnded({ state: "completed", error: null });
    run("watch");
    await expect.poll(() => feed.turnsEnded, POLL).toBe(1);
    expect(feed.turnNow.state).toBe("idle");
    expect(said().filter((one) => one.startsWith("request"))).toEqual([]);
  });
});
