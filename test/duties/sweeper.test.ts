import { it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { Activity, activityLayer } from "../../src/services/sessions/activity.ts";
import { Actors } from "../../src/services/actors.ts";
import { Conversations } from "../../src/store/ports/sessions/conversations.ts";
import { UNSAVED_MAX_MS } from "../../src/domain/save/order.ts";
import { NOTHING_TO_SAVE, type Saved } from "../../src/domain/save/saved.ts";
import { sweep } from "../../src/duties/sweeper.ts";
import * as Layer from "effect/Layer";
import { Identity } from "../../src/store/ports/people/identity.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { accountOf } from "../support/world/world.ts";
import { admitOne, requested } from "../support/world/sessions.ts";
import { answered, openActorsWorld, READY, until } from "../support/world/actors.ts";
import { nativeItem } from "../support/world/conversations.ts";

const IDLE_MS = 900_000;
const MAX_TURN_MS = 3_600_000;
const ROOM_MS = 600_000;
const OPTIONS = {
  nodeId: "node-1",
  idleTimeoutMs: IDLE_MS,
  maxTurnMs: MAX_TURN_MS,
  makeRoomAfterMs: ROOM_MS as number | null,
};

const instant = (ms: number): string => new Date(ms).toISOString();

/** A world with one running session. */
const running = Effect.gen(function* () {
  const world = yield* openActorsWorld();
  const activity = Context.get(yield* Layer.build(activityLayer), Activity);
  const { actors, end } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  yield* world.untilSession(id, "running");
  const round = world
    .inPorts(sweep(OPTIONS))
    .pipe(Effect.provideService(Activity, activity), Effect.provideService(Actors, actors));
  // A decision takes its time: the work is saved first.
  const settled = Effect.andThen(answered(round), TestClock.adjust("1 second"));
  return {
    world: { ...world, actors },
    activity,
    end,
    id,
    round,
    swept: Effect.andThen(settled, world.statusOf(id)),
  };
});

/** Runs it by a clock that is so much ahead of the world's: a day of the world's timers takes seconds. */
const ahead = <A, E, R>(ms: number, work: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Effect.service(Clock.Clock), (clock) =>
    Effect.provideService(work, Clock.Clock, {
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + ms,
      currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + ms),
      currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + BigInt(ms) * 1_000_000n,
      currentTimeNanos: Effect.map(clock.currentTimeNanos, (now) => now + BigInt(ms) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      sleep: (duration) => clock.sleep(duration),
    }),
  );

/** What health says of the agent's turns from now on. */
const says = (
  { script }: { script: { health: typeof READY | null } },
  turn: Partial<(typeof READY)["turn"]>,
) => {
  script.health = { ...READY, turn: { ...READY.turn, ...turn } };
};

/** The agent of a session waits for a person from now on. */
const asksPerson = Effect.fnUntraced(function* (world: Effect.Success<typeof running>["world"], id: string) {
  const sandboxId = (yield* world.session(id))?.sandboxId ?? "";
  const now = yield* Clock.currentTimeMillis;
  const turn = { state: "requires_action", waiting_for: "ask" } as const;
  const questions = [{ title: "", text: "Which colour?", options: [], multiple: false }];
  const request = nativeItem("ask", 1, {
    kind: "request",
    status: "running",
    completed_at: null,
    request: { kind: "question", title: "", patterns: [], questions },
  });
  const ask = Effect.flatMap(Conversations, ({ open, note }) =>
    Effect.andThen(open(id, now), note(id, { sandboxId, items: [request], turn, rev: 1, now })),
  );
  expect((yield* world.inPorts(ask))?.conversation.turn.state).toBe("requires_action");
});

describe("a running session", () => {
  it.effect("is hibernated after the idle timeout without use, and not before", () =>
    Effect.gen(function* () {
      const { world, id, swept } = yield* running;
      yield* TestClock.adjust(IDLE_MS - 10_000);
      expect(yield* swept).toBe("running");
      yield* TestClock.adjust(10_000);
      expect(yield* swept).toBe("stopped");
      expect(yield* world.session(id)).toMatchObject({ stopReason: "idle" });
      yield* world.untilSandbox(id, "archived");
      expect(yield* world.running).toEqual([]);
    }),
  );

  it.effect("stays while a user is connected to it", () =>
    Effect.gen(function* () {
      const { activity, id, swept } = yield* running;
      for (let hours = 0; hours < 3; hours += 1) {
        yield* TestClock.adjust(IDLE_MS - 1);
        activity.touch(id);
        expect(yield* swept).toBe("running");
      }
      yield* TestClock.adjust(IDLE_MS);
      expect(yield* swept).toBe("stopped");
    }),
  );

  it.effect("stays while a person types in its terminal, and is idle from the last key", () =>
    Effect.gen(function* () {
      const { world, swept } = yield* running;
      for (let hours = 0; hours < 3; hours += 1) {
        yield* TestClock.adjust(IDLE_MS - 1);
        world.script.health = { ...READY, typed_at: instant(yield* Clock.currentTimeMillis) };
        yield* TestClock.adjust(60_000);
        expect(yield* swept).toBe("running");
      }
      yield* TestClock.adjust(IDLE_MS - 60_000);
      expect(yield* swept).toBe("stopped");
    }),
  );

  it.effect("is hibernated despite an open terminal without keys", () =>
    Effect.gen(function* () {
      const { world, swept } = yield* running;
      world.script.health = { ...READY, typed_at: null };
      yield* TestClock.adjust(IDLE_MS);
      expect(yield* swept).toBe("stopped");
    }),
  );

  it.effect("stays while its agent works, however long without requests", () =>
    Effect.gen(function* () {
      const { world, swept } = yield* running;
      const since = yield* Clock.currentTimeMillis;
      says(world, { active: true, active_since: instant(since), last_activity_at: instant(since) });
      yield* TestClock.adjust(MAX_TURN_MS + IDLE_MS - 60_000);
      expect(yield* swept).toBe("running");
    }),
  );

  it.effect("is hibernated despite its working agent when the turn has passed its time limit", () =>
    Effect.gen(function* () {
      const { world, swept } = yield* running;
      const since = yield* Clock.currentTimeMillis;
      yield* TestClock.adjust(MAX_TURN_MS + IDLE_MS);
      const now = instant(yield* Clock.currentTimeMillis);
      says(world, { active: true, active_since: instant(since), last_activity_at: now });
      expect(yield* swept).toBe("stopped");
    }),
  );

  it.effect("is hibernated despite its turn if the agent waits for a person and none comes", () =>
    Effect.gen(function* () {
      const { world, activity, id, swept } = yield* running;
      const since = yield* Clock.currentTimeMillis;
      says(world, { active: true, active_since: instant(since) });
      yield* TestClock.adjust(IDLE_MS * 2);
      yield* asksPerson(world, id);
      yield* TestClock.adjust(IDLE_MS - 60_000);
      expect(yield* swept).toBe("running");
      activity.touch(id);
      yield* TestClock.adjust(IDLE_MS - 60_000);
      expect(yield* swept).toBe("running");
      yield* TestClock.adjust(60_000);
      expect(yield* swept).toBe("stopped");
      expect((yield* world.session(id))?.asked).toEqual({ kind: "question", text: "Which colour?" });
    }),
  );

  it.effect("is at work from the answer to its agent's request on, before the daemon has reported that", () =>
    Effect.gen(function* () {
      const { world, id, swept } = yield* running;
      const { actors } = world;
      const asked = yield* Clock.currentTimeMillis;
      says(world, { active: true, active_since: instant(asked) });
      const sandboxId = (yield* world.session(id))?.sandboxId ?? "";
      const request = nativeItem("ask", 1, {
        kind: "request",
        status: "running",
        completed_at: null,
        request: { kind: "question", title: "", patterns: [], questions: [] },
      });
      const turn = { state: "requires_action", waiting_for: "ask" } as const;
      const conversations = yield* world.inPorts(Conversations);
      yield* conversations.open(id, asked);
      yield* conversations.note(id, { sandboxId, items: [request], turn, rev: 1, now: asked });
      const page = conversations.page(id, { before: null, limit: 1 });
      const { id: requestId = "", seq } = (yield* page)?.requests[0] ?? { seq: 0 };
      const reported = { type: "runtime.reported", sandboxId, ended: 0, isWorking: true, plans: [] } as const;
      yield* actors.conversation(id, { ...reported, requests: [requestId], isAttended: true, seq });
      yield* TestClock.adjust(IDLE_MS - 1_000);
      yield* actors.conversation(id, {
        type: "answer.given",
        requestId,
        answer: { declined: "expired" },
        by: null,
      });
      expect((yield* page)?.requests).toMatchObject([{ answer: { answer: { declined: "expired" } } }]);
      yield* TestClock.adjust(60_000);
      expect(yield* swept).toBe("running");
    }),
  );

  it.effect("is not hibernated by the time limit while a user is connected to it", () =>
    Effect.gen(function* () {
      const { world, activity, id, swept } = yield* running;
      const since = yield* Clock.currentTimeMillis;
      says(world, { active: true, active_since: instant(since) });
      yield* TestClock.adjust(MAX_TURN_MS + IDLE_MS);
      activity.touch(id);
      expect(yield* swept).toBe("running");
    }),
  );

  it.effect("is idle from the end of its agent's last turn", () =>
    Effect.gen(function* () {
      const { world, swept } = yield* running;
      yield* TestClock.adjust(IDLE_MS * 3);
      says(world, { last_activity_at: instant((yield* Clock.currentTimeMillis) - IDLE_MS + 60_000) });
      expect(yield* swept).toBe("running");
      yield* TestClock.adjust(60_000);
      expect(yield* swept).toBe("stopped");
    }),
  );

  it.effect("is judged by requests alone if its runtime's turns are unknown", () =>
    Effect.gen(function* () {
      const { world, swept } = yield* running;
      says(world, { active: null });
      yield* TestClock.adjust(IDLE_MS);
      expect(yield* swept).toBe("stopped");
    }),
  );

  it.effect("stays if its daemon does not answer, because its agent's state is unknown", () =>
    Effect.gen(function* () {
      const { world, swept } = yield* running;
      world.script.health = null;
      yield* TestClock.adjust(IDLE_MS * 10);
      expect(yield* swept).toBe("running");
    }),
  );

  it.effect("stays if a clock in its sandbox is fast or invalid [A09]", () =>
    Effect.gen(function* () {
      const { world, swept } = yield* running;
      yield* TestClock.adjust(IDLE_MS);
      says(world, { last_activity_at: "2999-01-01T00:00:00.000Z" });
      expect(yield* swept).toBe("running");
      says(world, { last_activity_at: "never" });
      expect(yield* swept).toBe("stopped");
    }),
  );

  it.effect(
    "ends once if a person stops it in the moment of the sweep, and stays if a person uses it [R04]",
    () =>
      Effect.gen(function* () {
        const { world, activity, id, round } = yield* running;
        yield* TestClock.adjust(IDLE_MS);
        activity.touch(id);
        yield* answered(round);
        expect(yield* world.statusOf(id)).toBe("running");
        yield* TestClock.adjust(IDLE_MS);
        const stop = Effect.orDie(world.actors.session(id, { type: "stop.requested" }));
        yield* answered(Effect.all([round, stop, round], { concurrency: "unbounded", discard: true }));
        yield* world.untilSession(id, "stopped");
        const row = yield* world.session(id);
        expect(["idle", "requested"]).toContain(row?.stopReason);
        // A stop that came second has the idle sandbox end as it was to end first.
        expect(["archived", "stopped"]).toContain((yield* world.newestSandbox(id))?.status);
        yield* until(Effect.map(world.running, (ids) => ids.length === 0));
        expect(yield* world.running).toEqual([]);
        yield* answered(round);
        expect((yield* world.session(id))?.stopReason).toBe(row?.stopReason);
      }),
  );

  it.effect("is left to the other node that has its sandbox", () =>
    Effect.gen(function* () {
      const { world, activity, id } = yield* running;
      const { actors } = yield* world.begin;
      yield* TestClock.adjust(IDLE_MS * 2);
      const elsewhere = world
        .inPorts(sweep({ ...OPTIONS, nodeId: "node-2" }))
        .pipe(Effect.provideService(Activity, activity), Effect.provideService(Actors, actors));
      yield* answered(elsewhere);
      expect(yield* world.statusOf(id)).toBe("running");
    }),
  );

  it.effect("does not block a round if its provider never says how to reach it", () =>
    Effect.gen(function* () {
      const { world, swept } = yield* running;
      yield* TestClock.adjust(IDLE_MS);
      yield* world.sandboxes.fault("link", { kind: "hang" });
      expect(yield* swept).toBe("running");
      expect(yield* swept).toBe("stopped");
    }),
  );
});

describe("activity", () => {
  it.effect(
    "is forgotten for sessions that no longer run, begins with the node, and counts what is open",
    () =>
      Effect.gen(function* () {
        const activity = Context.get(yield* Layer.build(activityLayer), Activity);
        const begun = yield* Clock.currentTimeMillis;
        yield* TestClock.adjust(1000);
        activity.touch("a");
        activity.touch("b");
        expect([activity.last("a"), activity.last("c")]).toEqual([begun + 1000, begun]);
        const [close, closeOther] = [activity.open("a"), activity.open("a")];
        close();
        expect(activity.isOpen("a")).toBe(true);
        closeOther();
        expect(activity.isOpen("a")).toBe(false);
        activity.keep(new Set(["b"]));
        expect([activity.last("a"), activity.last("b")]).toEqual([begun, begun + 1000]);
      }),
  );
});

describe("a session that rests while a person's request waits for a slot", () => {
  /** The older of two sessions that rest, saved whole. The account is at its cap, and a request waits. */
  const atCap = Effect.gen(function* () {
    const begun = yield* running;
    const { world, activity, id, swept } = begun;
    yield* TestClock.adjust("1 minute");
    const younger = yield* world.admit;
    yield* world.actors.wake("session", younger);
    yield* world.untilSession(younger, "running");
    const save = Effect.fnUntraced(function* (sessionId: string, saved: Saved = NOTHING_TO_SAVE) {
      const sandboxId = (yield* world.session(sessionId))?.sandboxId ?? "";
      yield* world.inPorts(
        Effect.flatMap(Sessions, ({ noteSaved }) => noteSaved(sessionId, { sandboxId, saved })),
      );
    });
    for (const sessionId of [id, younger]) yield* save(sessionId);
    yield* world.inPorts(
      Effect.flatMap(Identity, ({ setTier }) => setTier(world.world.accountId, "free", 2)),
    );
    const ask = world.inPorts(Effect.suspend(() => admitOne(world.world, requested(world.world))));
    expect((yield* ask).outcome).toBe("queued");
    activity.touch(id);
    activity.touch(younger);
    yield* TestClock.adjust(ROOM_MS - 1_000);
    activity.touch(younger);
    const states = Effect.andThen(swept, Effect.all([world.statusOf(id), world.statusOf(younger)]));
    return { ...begun, younger, save, ask, states };
  });

  it.effect("makes room if it has rested longest and for long enough, and no other one does", () =>
    Effect.gen(function* () {
      const { world, id, states } = yield* atCap;
      expect(yield* states).toEqual(["running", "running"]);
      yield* TestClock.adjust("1 second");
      expect(yield* states).toEqual(["stopped", "running"]);
      expect(yield* world.session(id)).toMatchObject({ stopReason: "made_room" });
      // The request has the slot by now or soon.
      yield* TestClock.adjust(ROOM_MS);
      expect(yield* world.inPorts(accountOf(world.world))).toMatchObject({ queuedFires: 0 });
      expect((yield* states)[1]).toBe("running");
    }),
  );

  it.effect("stays with an open connection, without a whole save, in a turn, or if the setting is off", () =>
    Effect.gen(function* () {
      const { world, activity, id, younger, save, states } = yield* atCap;
      yield* TestClock.adjust("1 second");
      const closed = activity.open(id);
      expect(yield* states).toEqual(["running", "running"]);
      closed();
      yield* save(id, { ...NOTHING_TO_SAVE, state: "partial" });
      expect(yield* states).toEqual(["running", "running"]);
      yield* save(id);
      const now = instant(yield* Clock.currentTimeMillis);
      says(world, { active: true, active_since: now });
      expect(yield* states).toEqual(["running", "running"]);
      yield* asksPerson(world, id);
      activity.touch(id);
      yield* TestClock.adjust(ROOM_MS);
      activity.touch(younger);
      expect(yield* states).toEqual(["running", "running"]);
      says(world, { active: false, active_since: null });
      const off = world
        .inPorts(sweep({ ...OPTIONS, makeRoomAfterMs: null }))
        .pipe(Effect.provideService(Activity, activity), Effect.provideService(Actors, world.actors));
      yield* answered(off);
      expect(yield* world.statusOf(id)).toBe("running");
      expect(yield* states).toEqual(["stopped", "running"]);
    }),
  );

  it.effect("makes no room for more requests than wait, and one for each that does", () =>
    Effect.gen(function* () {
      const { ask, states } = yield* atCap;
      yield* ask;
      yield* TestClock.adjust(ROOM_MS);
      expect(yield* states).toEqual(["stopped", "stopped"]);
    }),
  );
});

describe("a session whose work cannot be saved", () => {
  const PENDING = [{ path: "big.bin", reason: "limit" }];
  const PART: Saved = { ...NOTHING_TO_SAVE, state: "partial", pending: PENDING };

  /** It has been tried once. */
  const unsaved = Effect.gen(function* () {
    const begun = yield* running;
    const { world, swept } = begun;
    world.saves.scripted = () => Effect.succeed(PART);
    yield* TestClock.adjust(IDLE_MS);
    expect(yield* swept).toBe("running");
    const tries = Effect.map(world.session(begun.id), (row) => row?.unsaved?.tries);
    expect(yield* tries).toBe(1);
    return { ...begun, tries };
  });

  it.effect("is tried again after a pause, and no sooner", () =>
    Effect.gen(function* () {
      const { swept, tries, world } = yield* unsaved;
      expect(yield* swept).toBe("running");
      expect(yield* tries).toBe(1);
      yield* TestClock.adjust("1 minute");
      expect(yield* swept).toBe("running");
      expect(yield* tries).toBe(2);
      yield* TestClock.adjust("1 minute");
      yield* swept;
      expect(yield* tries).toBe(2);
      world.saves.scripted = () => Effect.succeed(NOTHING_TO_SAVE);
      yield* TestClock.adjust("1 minute");
      expect(yield* swept).toBe("stopped");
    }),
  );

  it.effect("goes after a day with what is saved", () =>
    Effect.gen(function* () {
      const { id, round, world } = yield* unsaved;
      const sweptAt = (ms: number) =>
        Effect.andThen(
          Effect.andThen(answered(ahead(ms, round)), TestClock.adjust("1 second")),
          world.statusOf(id),
        );
      expect(yield* sweptAt(UNSAVED_MAX_MS - 60_000)).toBe("running");
      expect(yield* sweptAt(UNSAVED_MAX_MS)).toBe("stopped");
      expect(yield* world.session(id)).toMatchObject({ stopReason: "idle", saved: PART });
    }),
  );

  it.effect("goes if it holds a slot beyond half of its account's", () =>
    Effect.gen(function* () {
      const { id, swept, world } = yield* unsaved;
      const others = yield* Effect.forEach([1, 2, 3, 4, 5], () => world.admit);
      for (const other of others) yield* world.actors.wake("session", other);
      for (const other of others) yield* world.untilSession(other, "running");
      yield* TestClock.adjust(IDLE_MS);
      expect(yield* swept).toBe("running");
      yield* TestClock.adjust("1 second");
      expect(yield* swept).toBe("stopped");
      for (const other of others) expect(yield* world.statusOf(other)).toBe("running");
      expect(yield* world.session(id)).toMatchObject({ stopReason: "idle" });
    }),
  );
});
