/** The service's cron side over twins and a test clock: messages to triggers meet their fate, and triggers move. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Scope from "effect/Scope";
import { TestClock } from "effect/testing";
import { accountActors } from "../../src/actors/account.ts";
import { Actors, ActorUnavailable, Placement } from "../../src/actors/actors.ts";
import { admitterLayer } from "../../src/services/admission.ts";
import { actorsLayer, placementLayer, singleRunner } from "../../src/actors/cluster.ts";
import { cursorReadsLayer } from "../../src/services/cursors.ts";
import { directoryLayer } from "../../src/services/directory.ts";
import { firingLayer } from "../../src/services/firing.ts";
import { keyringLayer } from "../../src/services/keyring.ts";
import { Manifests, manifestsLayer } from "../../src/duties/manifests.ts";
import { schedulerLayer } from "../../src/duties/scheduler.ts";
import { timersLayer } from "../../src/actors/timers.ts";
import { triggerActors } from "../../src/actors/trigger.ts";
import { GitBackend } from "../../src/git/port.ts";
import { simulatedBackend, SimulatedRepositories } from "../../src/git/simulated.ts";
import type { TriggerEvent } from "../../src/machines/trigger.ts";
import { StoreError } from "../../src/store/ports/journal.ts";
import { memoryStore } from "../../src/store/memory/layer.ts";
import { Fires } from "../../src/store/ports/fires.ts";
import { Identity } from "../../src/store/ports/identity.ts";
import { Projects } from "../../src/store/ports/projects.ts";

const id = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
export const PROJECT = id(4);
const POLL_MS = 60_000;

/**
 * What becomes of a message to a trigger: it arrives, is refused as by a runner that is away, is lost unanswered, or arrives
 * when its door is opened.
 */
export type Fate = "arrives" | "fails" | "is lost" | Latch.Latch;
export type Fates = (event: TriggerEvent, nth: number) => Fate;

/** The address book whose messages to triggers meet their fate; `nth` counts those of one type from 1. */
const meeting = (fates: Fates) =>
  Layer.effect(
    Actors,
    Effect.map(Actors, (actors) => {
      const told = new Map<string, number>();
      return Actors.of({
        ...actors,
        trigger: (actorId, event) =>
          Effect.suspend(() => {
            const nth = (told.get(event.type) ?? 0) + 1;
            told.set(event.type, nth);
            const fate = fates(event, nth);
            if (fate === "arrives") return actors.trigger(actorId, event);
            if (typeof fate === "object") return Effect.andThen(fate.await, actors.trigger(actorId, event));
            return fate === "is lost"
              ? Effect.die(new Error("a message was lost"))
              : Effect.fail(new ActorUnavailable({ actorId, reason: "its runner is away" }));
          }),
      });
    }),
  ).pipe(Layer.provide(actorsLayer));

const entity = { maxIdleMs: 60_000 };

/** A project whose cursors the database does not give out: someone holds its row, say. */
export const LOCKED = id(5);
const lockedOut = Layer.effect(
  Projects,
  Effect.map(Projects, (projects) =>
    Projects.of({
      ...projects,
      keepCursors: (request) =>
        request.projectId === LOCKED
          ? Effect.fail(new StoreError({ operation: "projects.keepCursors", cause: new Error("a lock") }))
          : projects.keepCursors(request),
    }),
  ),
);

/** Where triggers live: here, until a test moves them. */
export class Places extends Context.Service<
  Places,
  { readonly move: (isHere: boolean) => Effect.Effect<void> }
>()("test/Places") {}
const placed = Layer.effectContext(
  Effect.gen(function* () {
    const cluster = yield* Placement;
    const moved = yield* Queue.unbounded<void>();
    let isHere = true;
    const move = (to: boolean) =>
      Effect.suspend(() => {
        isHere = to;
        return Effect.asVoid(Queue.offer(moved, undefined));
      });
    const moves = Effect.raceFirst(cluster.moves, Queue.take(moved));
    return Context.make(Places, { move }).pipe(
      Context.add(Placement, { isHere: (trigger) => isHere && cluster.isHere(trigger), moves }),
    );
  }),
).pipe(Layer.provide(placementLayer));

/** The service's cron side alone, over twins. */
const cronSide = (fates: Fates, queueMax: number) =>
  schedulerLayer({ intervalMs: POLL_MS }).pipe(
    Layer.provideMerge(
      triggerActors({ ...entity, catchupWindowMs: 3_600_000, fireRetentionMs: 2_592_000_000 }),
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        firingLayer({ bootTimeoutMs: 120_000, queueTtlMs: 86_400_000, queueMax }),
        manifestsLayer,
      ),
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        admitterLayer,
        directoryLayer,
        cursorReadsLayer,
        timersLayer,
        accountActors({ ...entity, bootTimeoutMs: 120_000 }),
      ),
    ),
    Layer.provideMerge(Layer.mergeAll(meeting(fates), lockedOut, placed)),
    Layer.provideMerge(
      Layer.mergeAll(
        memoryStore,
        singleRunner,
        simulatedBackend,
        keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
      ),
    ),
  );

export type Services = Layer.Success<ReturnType<typeof cronSide>>;

export const trigger = (slug: string, cron: string) => `
[[triggers]]
slug = "${slug}"
type = "cron"
cron = "${cron}"
prompt = "tick"
`;

export const newProject = (projectId: string) => ({
  id: projectId,
  accountId: id(1),
  name: "p",
  repository: { kind: "hosted" as const },
  defaultBranch: "main",
  createdBy: id(2),
  now: 0,
});

/** The manifest of the project is `text` now, and read. */
export const push = Effect.fnUntraced(function* (text: string) {
  yield* (yield* SimulatedRepositories).commit(
    { projectId: PROJECT },
    { branch: "main", onto: null, files: { "platform.toml": text }, subject: "manifest" },
  );
  const project = yield* (yield* Projects).get(PROJECT);
  if (project !== null) yield* (yield* Manifests).sync(project);
});

/** An account that may run `cap` sessions, with a project whose manifest is `text`, read. */
export const begin = Effect.fnUntraced(function* (text: string, cap: number) {
  yield* (yield* Identity).bootstrap({
    accountId: id(1),
    userId: id(2),
    tokenId: id(3),
    tokenHash: "0".repeat(64),
    tier: "free",
    cap,
    now: 0,
  });
  yield* (yield* GitBackend).create({ projectId: PROJECT, importFrom: null, defaultBranch: "main" });
  yield* (yield* Projects).create(newProject(PROJECT));
  yield* push(text);
});

/** Second by second: what becomes ready at an instant runs before the next one. */
export const advance = (seconds: number) =>
  Effect.repeat(TestClock.adjust("1 second"), { times: seconds - 1 });

/** Runs a test over the cron side, and ends it while the clock goes on. */
export const over = <E>(
  test: Effect.Effect<void, E, Services>,
  fates: Fates = () => "arrives",
  queueMax = 100,
) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make();
    const context = yield* Layer.buildWithScope(cronSide(fates, queueMax), scope);
    yield* Effect.provideContext(test, context);
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void));
    yield* advance(10);
    yield* Fiber.join(closing);
  });

/** The ledger, oldest first: second of the instant, status, reason. */
export const ledger = Effect.gen(function* () {
  const everything = { limit: 200, cursor: null, status: null, slug: null };
  const { items } = yield* (yield* Fires).list(PROJECT, everything);
  return items
    .map(({ triggerSlug, scheduledFor, status, reason }) => {
      const second = (scheduledFor ?? Number.NaN) / 1000;
      return { slug: triggerSlug, second, status, reason };
    })
    .toSorted((a, b) => a.second - b.second);
});
export const seconds = Effect.map(ledger, (rows) => rows.map(({ second }) => second));

export const isTimer = ({ type }: TriggerEvent): boolean => type === "timer.elapsed";
