/**
 * The cost of holding a number of cron triggers while none is due, in a separate process. Real: the directory,
 * the schedules, the scheduler with its poll, manifests as text. Twins: the clock, the store's projects (which keep
 * nothing here, so that the heap is the service's alone) and the actors, which must get no message.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { TestClock } from "effect/testing";
import { Actors, Placement } from "../../../src/services/actors.ts";
import { Directory, directoryLayer } from "../../../src/services/directory.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { Scheduler, schedulerLayer } from "../../../src/duties/scheduler.ts";
import { Timers, timersLayer } from "../../../src/actors/timers.ts";
import { Projects, type Project, type ProjectState } from "../../../src/store/ports/projects/projects.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { median, rounded } from "../figures.ts";
import { obey } from "../programs.ts";
import { manifestOf, spread, uuid } from "./manifests.ts";

/** What the parent asks for. */
export interface HoldingOrder {
  readonly triggers: number;
  readonly ticks: number;
}

export interface Holding {
  readonly triggers: number;
  readonly projects: number;
  /** Reading the manifests: the directory's first look. */
  readonly load_s: number;
  /** From the directory's news to the last trigger that has its next instant. */
  readonly take_up_s: number;
  /** Longest that the event loop stood still while they were taken up. */
  readonly take_up_stall_ms: number;
  /** One round of the poll, from the clock's second to its end. */
  readonly tick_us: number;
  readonly tick_max_us: number;
  /** All of them handed out at once, as if they were due (threats.md C20). */
  readonly hand_out_s: number;
  /** Heap of the schedules alone, and of everything that is held: manifests' text, definitions, schedules. */
  readonly schedules_bytes: number;
  readonly held_bytes: number;
  /** Resident memory of the process after a collection, with nothing held and with everything, in MB of 10^6 bytes. */
  readonly rss_empty_mb: number;
  readonly rss_mb: number;
}

const INTERVAL_MS = 60_000;
const PROJECT = 4;
/** What the clock shows at the start. */
const QUIET = Date.UTC(2026, 5, 15, 12, 0, 0);

const turn = Effect.promise<void>(
  () =>
    new Promise((resolve) => {
      setImmediate(resolve);
    }),
);

const usedHeap = Effect.sync(() => {
  if (globalThis.gc === undefined) throw new Error("run this with --expose-gc");
  globalThis.gc();
  return process.memoryUsage().heapUsed;
});

/** Pages that a collection frees are given back a moment later. */
const SETTLE_MS = 2000;

const resident = Effect.gen(function* () {
  yield* Effect.sync(() => globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" }));
  // The fiber's clock is the test's.
  yield* Effect.promise(() => delay(SETTLE_MS));
  return Math.round(process.memoryUsage().rss / 1e6);
});

const projectOf = (number: number): Project => ({
  id: uuid(PROJECT, number),
  accountId: uuid(1, 1),
  name: `project-${number}`,
  status: "active",
  deletesAt: null,
  repository: { kind: "hosted" },
  defaultBranch: "main",
  triggersPaused: false,
  createdBy: uuid(2, 1),
  defaultRole: "member",
  mergeRole: "member",
  approvalsRequired: 0,
  manifest: { commit: null, syncedAt: QUIET, error: null },
  version: 1,
  createdAt: QUIET,
  updatedAt: QUIET,
});

/** The store's projects, each made when it is asked for, as if it came from a database. */
const madeProjects = (counts: readonly number[]) =>
  Layer.effect(
    Projects,
    Effect.map(Projects, (projects) => {
      const numbers = new Map(counts.map((_, number) => [uuid(PROJECT, number), number]));
      const stateOf = (number: number): ProjectState => {
        // One flat string, as a driver reads it.
        const text = Buffer.from(
          manifestOf(number, { triggers: counts[number] ?? 0, quietAt: QUIET }),
        ).toString();
        const commit = String(number).padStart(40, "0");
        return {
          project: projectOf(number),
          manifest: { commit, text, agents: [], bringsModel: null, environment: null },
          tier: "free",
          manifestFailure: null,
          secrets: [],
        };
      };
      return Projects.of({
        ...projects,
        states: (ids) =>
          Effect.as(
            turn,
            ids.map((id) => stateOf(numbers.get(id) ?? 0)),
          ),
        changedSince: (since) =>
          Effect.sync(() => ({
            changed: since === null ? [...numbers.keys()].map((id) => ({ id, version: 1 })) : [],
            since: "1",
          })),
        changed: Effect.never,
        keepCursors: ({ schedules, now }) =>
          Effect.as(
            turn,
            [...schedules].map(([slug, schedule]) => ({ slug, schedule, accountedUntil: now })),
          ),
      });
    }),
  ).pipe(Layer.provide(memoryStore));

/** Nothing is due: a message to an actor is a fault. */
const told = () => Effect.die(new Error("an actor got a message although nothing is due"));
const nobody = Layer.succeed(Actors, {
  session: told,
  sandbox: told,
  account: told,
  changeRequest: told,
  conversation: told,
  environmentBuild: told,
  trigger: told,
  wake: () => Effect.void,
  load: () => Effect.succeed(false),
});

const allHere = Layer.succeed(Placement, { isHere: () => true, moves: Effect.never });

const elapsedS = (since: number): number => (performance.now() - since) / 1000;

const tickTimes = Effect.fnUntraced(function* (ticks: number) {
  const times: number[] = [];
  for (let tick = 0; tick < ticks; tick += 1) {
    yield* TestClock.adjust(INTERVAL_MS - 1000);
    const begun = performance.now();
    yield* TestClock.adjust("1 second");
    times.push((performance.now() - begun) * 1000);
  }
  return times;
});

const measure = Effect.fnUntraced(function* ({ triggers, ticks }: HoldingOrder) {
  yield* TestClock.setTime(QUIET);
  const counts = spread(triggers);
  const keyring = keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] });
  const base = yield* Layer.build(
    Layer.mergeAll(
      madeProjects(counts),
      keyring,
      timersLayer.pipe(Layer.provideMerge(Layer.merge(nobody, allHere))),
    ),
  );
  const empty = yield* usedHeap;
  const rssEmpty = yield* resident;
  let begun = performance.now();
  const directory = yield* Layer.build(directoryLayer.pipe(Layer.provideMerge(Layer.succeedContext(base))));
  const loadS = elapsedS(begun);
  const loaded = yield* usedHeap;

  const stall = monitorEventLoopDelay({ resolution: 1 });
  stall.enable();
  begun = performance.now();
  const services = yield* Layer.build(
    schedulerLayer({ intervalMs: INTERVAL_MS }).pipe(Layer.provideMerge(Layer.succeedContext(directory))),
  );
  const { state } = Context.get(services, Scheduler);
  while ((yield* state).scheduled < triggers) yield* turn;
  const takeUpS = elapsedS(begun);
  stall.disable();
  const full = yield* usedHeap;
  const rss = yield* resident;

  const times = yield* tickTimes(ticks);
  const { tickedAt } = yield* state;
  if (tickedAt !== QUIET + ticks * INTERVAL_MS) throw new Error(`the poll stands at ${tickedAt}`);
  const { schedules } = Context.get(services, Timers);
  if (schedules.take(tickedAt) !== null || schedules.takeAgain(tickedAt, tickedAt).length > 0)
    throw new Error("something is due that must not be");
  begun = performance.now();
  let handedOut = 0;
  while (schedules.take(Number.MAX_SAFE_INTEGER) !== null) handedOut += 1;
  const handOutS = elapsedS(begun);
  if (handedOut !== triggers) throw new Error(`${handedOut} of ${triggers} triggers were handed out`);
  const known = [...Context.get(services, Directory).all()].length;
  return {
    triggers,
    projects: known,
    load_s: rounded(loadS),
    take_up_s: rounded(takeUpS),
    take_up_stall_ms: rounded(stall.max / 1e6),
    tick_us: rounded(median(times)),
    tick_max_us: rounded(Math.max(...times)),
    hand_out_s: rounded(handOutS),
    schedules_bytes: Math.round((full - loaded) / triggers),
    held_bytes: Math.round((full - empty) / triggers),
    rss_empty_mb: rssEmpty,
    rss_mb: rss,
  } satisfies Holding;
});

obey((order: HoldingOrder) =>
  Effect.runPromise(measure(order).pipe(Effect.scoped, Effect.provide(TestClock.layer()))),
);
