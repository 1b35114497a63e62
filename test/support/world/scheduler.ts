/** The service's cron side over twins and a test clock: messages to triggers meet their fate, and triggers move. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import { accountActors } from "../../../src/actors/account.ts";
import { Actors, ActorUnavailable, Placement } from "../../../src/services/actors.ts";
import { admitterLayer } from "../../../src/services/triggers/admission.ts";
import { actorsLayer, placementLayer, singleRunner } from "../../../src/actors/cluster.ts";
import { cursorReadsLayer } from "../../../src/services/triggers/cursors.ts";
import { directoryLayer } from "../../../src/services/directory.ts";
import { firingLayer } from "../../../src/services/triggers/firing.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { simulatedSite } from "../../../src/builder/site/simulated.ts";
import { environmentsLayer } from "../../../src/services/environments/environments.ts";
import { manifestsLayer } from "../../../src/services/projects/manifests.ts";
import { schedulerLayer } from "../../../src/duties/scheduler.ts";
import { timersLayer } from "../../../src/actors/timers.ts";
import { triggerActors } from "../../../src/actors/trigger.ts";
import { simulatedBackend } from "../../twins/git/repositories.ts";
import type { TriggerEvent } from "../../../src/machines/trigger.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { Fires } from "../../../src/store/ports/triggers/fires.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { inOneLife } from "./clock.ts";
import { makeWorldWithRepository, NUMBERED, numbered, pushManifest } from "./world.ts";

export const PROJECT = NUMBERED.projectId;
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
export const LOCKED = numbered(5);
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
    Layer.provideMerge(environmentsLayer({ nodeId: "node-1", refreshMs: 604_800_000 })),
    Layer.provideMerge(Layer.mergeAll(meeting(fates), lockedOut, placed)),
    Layer.provideMerge(
      Layer.mergeAll(
        memoryStore,
        simulatedSite,
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

/** The manifest of the project is `text` now, and read. */
export const push = (text: string) => pushManifest(PROJECT, text);

/** An account that may run `cap` sessions, with a project whose manifest is `text`, read. */
export const begin = Effect.fnUntraced(function* (text: string, cap: number) {
  yield* makeWorldWithRepository({ ...NUMBERED, cap });
  yield* push(text);
});

/** Runs a test over one life of the cron side. */
export const over = <E>(
  test: Effect.Effect<void, E, Services>,
  fates: Fates = () => "arrives",
  queueMax = 100,
) => inOneLife(cronSide(fates, queueMax), test);

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
