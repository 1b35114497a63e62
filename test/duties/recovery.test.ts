import { it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Logger from "effect/Logger";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { Actors } from "../../src/services/actors.ts";
import { proposedWorkLayer } from "../../src/features/change-requests/proposed-work.ts";
import { recover, recoveryLayer } from "../../src/duties/recovery.ts";
import { Doubt, Doubts } from "../../src/services/doubt.ts";
import type { SandboxStatus, SessionStatus } from "../../src/domain/session/session.ts";
import { sandbox } from "../../src/machines/sandbox.ts";
import { Conversations } from "../../src/store/ports/sessions/conversations.ts";
import { Counters } from "../../src/store/ports/triggers/counters.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { StoreHealth } from "../../src/store/ports/health.ts";
import { Sandboxes } from "../../src/store/ports/sessions/sandboxes.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { answered, openActorsWorld, READY } from "../support/world/actors.ts";
import { nativeItem } from "../support/world/conversations.ts";

const INTERVAL_MS = 5_000;

type World = Effect.Success<ReturnType<typeof openActorsWorld>>;

/** All their commands count as done. */
const forget = Effect.fnUntraced(function* (id: string, sandboxId: string) {
  for (const [memory, actor] of [
    [(yield* Sessions).memory, id],
    [(yield* Sandboxes).memory, sandboxId],
  ] as const) {
    const loaded = yield* memory.load(actor);
    yield* memory.complete(actor, loaded?.pending.map((command) => command.id) ?? []);
  }
});

/** A session whose service died, and of which nothing that was left to do is written down any more. */
const forgotten = Effect.fnUntraced(function* (session: SessionStatus, status: SandboxStatus) {
  const world = yield* openActorsWorld();
  if (session === "provisioning") world.script.health = null;
  const { actors, end } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  yield* world.untilSandbox(id, status);
  yield* world.untilSession(id, session);
  yield* end;
  yield* world.inPorts(forget(id, (yield* world.newestSandbox(id))?.id ?? ""));
  world.script.health = READY;
  return { world, id };
});

/** One look of another life. */
const looked = Effect.fnUntraced(function* (world: World) {
  const { actors } = yield* world.begin;
  yield* answered(Effect.provideService(world.inPorts(recover), Actors, actors));
});

describe("a live session that no process works for", () => {
  for (const [session, status] of [
    ["provisioning", "provisioning"],
    ["running", "active"],
  ] as const) {
    it.effect(`ends with a reason and without its sandbox if it was ${session} [I7, I22]`, () =>
      Effect.gen(function* () {
        const { world, id } = yield* forgotten(session, status);
        yield* looked(world);
        yield* world.untilSession(id, "failed");
        expect((yield* world.session(id))?.failure).toMatchObject({ code: "internal_error" });
        yield* world.untilSandbox(id, "error");
        yield* TestClock.adjust("1 second");
        expect(yield* world.running).toEqual([]);
      }),
    );
  }

  it.effect("leaves no open item of a sandbox that has ended [I7]", () =>
    Effect.gen(function* () {
      const { world, id } = yield* forgotten("running", "active");
      const sandboxId = (yield* world.newestSandbox(id))?.id ?? "";
      const now = yield* Clock.currentTimeMillis;
      const items = [nativeItem("answer", 1, { status: "running", completed_at: null })];
      const turn = { state: "running", waiting_for: null } as const;
      const ended = Effect.gen(function* () {
        const { open, note } = yield* Conversations;
        yield* open(id, now);
        yield* note(id, { sandboxId, items, turn, rev: 1, now });
        const { memory } = yield* Sandboxes;
        const loaded = yield* memory.load(sandboxId);
        if (loaded === null) return;
        const failure = { code: "sandbox_lost", message: "its node died" } as const;
        const event = { type: "sandbox.lost", failure } as const;
        const { snapshot: after } = sandbox.step(loaded.snapshot, event);
        const { snapshot: before, version } = loaded;
        yield* memory.save({
          id: sandboxId,
          version,
          event,
          before,
          after,
          commands: [],
          completes: null,
          now,
        });
      });
      yield* world.inPorts(ended);
      yield* looked(world);
      yield* world.untilSession(id, "failed");
      const { get, page } = yield* world.inPorts(Conversations);
      expect((yield* get(id))?.turn.state).toBe("idle");
      const found = yield* page(id, { before: null, limit: 10 });
      expect(found?.items.filter(({ nativeId }) => nativeId === "answer")).toMatchObject([
        { status: "lost" },
      ]);
    }),
  );

  it.effect("ends if it has no branch yet [I7]", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld();
      const id = yield* world.admit;
      yield* world.inPorts(forget(id, ""));
      yield* looked(world);
      yield* world.untilSession(id, "failed");
      expect((yield* world.session(id))?.failure).toMatchObject({ code: "internal_error" });
    }),
  );
});

/** The duty over ports that note what they are asked. */
const scene = Effect.gen(function* () {
  const asked: string[] = [];
  const note = (what: string) => Effect.sync(() => void asked.push(what));
  const ports = Layer.mergeAll(
    Layer.mock(Counters, {
      wrong: Effect.succeed(["account-1", "account-2"]),
      mend: (id) =>
        Effect.as(
          note(`mend ${id}`),
          id === "account-1"
            ? { activeSessions: { said: 3, counted: 1 }, queuedFires: { said: 0, counted: 0 } }
            : null,
        ),
    }),
    Layer.effect(
      Sessions,
      Effect.map(Sessions, (sessions) => ({ ...sessions, unsettled: Effect.as(note("look"), []) })),
    ),
    Layer.mock(Actors, {}),
  ).pipe(Layer.provideMerge(Layer.provideMerge(proposedWorkLayer, memoryStore)));
  const said: string[] = [];
  const logger = Logger.make<unknown, void>(({ message }) => void said.push(JSON.stringify(message)));
  const layer = recoveryLayer({ intervalMs: INTERVAL_MS }).pipe(
    Layer.provideMerge(Layer.mergeAll(ports, Doubts.layer)),
    Layer.provideMerge(Logger.layer([logger])),
  );
  const context = yield* Layer.build(Layer.fresh(layer));
  // The first look begins behind the start.
  yield* TestClock.adjust(0);
  return {
    asked,
    said,
    doubt: Context.get(context, Doubt),
    looks: () => asked.filter((what) => what === "look").length,
  };
});

/** Waits for an answer that the test gives. */
const wait = <A>(list: Deferred.Deferred<A>[]) =>
  Effect.suspend(() => {
    const answer = Deferred.makeUnsafe<A>();
    list.push(answer);
    return Deferred.await(answer);
  });

/** Recovery over so many sessions with something left to do, whose loading is answered one by one. */
const busyScene = Effect.fnUntraced(function* (count: number, isNew: boolean) {
  const busy = Array.from({ length: count }, (_, index) => ({
    id: `session-${index}`,
    newest: String(index),
  }));
  const loading: Deferred.Deferred<boolean>[] = [];
  const pings: Deferred.Deferred<void>[] = [];
  const ready = yield* Deferred.make<void>();
  const ports = Layer.mergeAll(
    Layer.effect(
      Sessions,
      Effect.map(Sessions, (sessions) => ({ ...sessions, unsettled: Effect.succeed(busy) })),
    ),
    Layer.mock(Actors, { load: () => wait(loading) }),
    Layer.succeed(StoreHealth)({
      ping: wait(pings),
      state: Effect.succeed({ writes: true, notifies: true }),
    }),
  ).pipe(Layer.provideMerge(Layer.provideMerge(proposedWorkLayer, memoryStore)));
  const layer = recoveryLayer({ intervalMs: INTERVAL_MS, ready: Deferred.await(ready) }).pipe(
    Layer.provide(Layer.mergeAll(ports, Doubts.layer)),
  );
  yield* Layer.build(Layer.fresh(layer));
  const answerAll = Effect.gen(function* () {
    // More are asked for meanwhile.
    const asked = loading.slice();
    for (const one of asked) yield* Deferred.succeed(one, isNew);
    yield* TestClock.adjust(0);
  });
  return { loading, pings, ready, answerAll };
});

describe("recovery over many sessions", () => {
  it.effect("begins when the service is ready, and loads few at a time", () =>
    Effect.gen(function* () {
      const { loading, ready, answerAll } = yield* busyScene(100, false);
      yield* TestClock.adjust("1 second");
      expect(loading).toHaveLength(0);
      yield* Deferred.succeed(ready, undefined);
      yield* TestClock.adjust(0);
      expect(loading).toHaveLength(4);
      yield* answerAll;
      expect(loading).toHaveLength(8);
    }),
  );

  it.effect("continues when the database has answered its earlier queries", () =>
    Effect.gen(function* () {
      const { loading, pings, ready, answerAll } = yield* busyScene(100, true);
      yield* Deferred.succeed(ready, undefined);
      yield* TestClock.adjust(0);
      yield* answerAll;
      expect([loading.length, pings.length]).toEqual([4, 4]);
      yield* Deferred.succeed(pings[0] ?? Deferred.makeUnsafe<void>(), undefined);
      yield* TestClock.adjust(0);
      expect(loading).toHaveLength(5);
    }),
  );

  it.effect("waits a second for a session whose node does not answer, and continues", () =>
    Effect.gen(function* () {
      const { loading, pings, ready } = yield* busyScene(100, true);
      yield* Deferred.succeed(ready, undefined);
      yield* TestClock.adjust("1 second");
      expect([loading.length, pings.length]).toEqual([4, 4]);
    }),
  );
});

describe("recovery", () => {
  it.effect("corrects wrong counters, and names them [I1]", () =>
    Effect.gen(function* () {
      const { asked, said } = yield* scene;
      expect(asked).toEqual(["mend account-1", "mend account-2", "look"]);
      expect(said).toHaveLength(1);
      expect(said[0]).toContain('"activeSessions":{"said":3,"counted":1}');
    }),
  );

  it.effect("runs at start, after each interval, and once for any number of signals", () =>
    Effect.gen(function* () {
      const { looks, doubt } = yield* scene;
      expect(looks()).toBe(1);
      yield* TestClock.adjust(INTERVAL_MS);
      expect(looks()).toBe(2);
      for (let count = 0; count < 50; count += 1) doubt();
      yield* TestClock.adjust("1 second");
      expect(looks()).toBe(3);
      yield* TestClock.adjust(INTERVAL_MS - 1_500);
      expect(looks()).toBe(3);
      yield* TestClock.adjust("1 second");
      expect(looks()).toBe(4);
    }),
  );
});
