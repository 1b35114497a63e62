/**
 * How late cron instants have their rows when many fall due in one second, beside the same rows inserted bare; a process
 * of its own over one database. Real: everything from the manifest's reading to the commit, with the clock and Postgres;
 * git and sandboxes are twins. The account has no slot, so that what is measured is the durable accept: each row is
 * committed with its place in the queue.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as pg from "pg";
import { singleRunner } from "../../../src/actors/cluster.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { Manifests } from "../../../src/services/projects/manifests.ts";
import { Scheduler } from "../../../src/duties/scheduler.ts";
import { readConfig } from "../../../src/settings/config.ts";
import { SimulatedSaves } from "../../twins/saves.ts";
import { simulatedBackend } from "../../twins/git/repositories.ts";
import { simulatedDaemon } from "../../../src/sandbox/daemon-simulated.ts";
import { simulatedSite } from "../../../src/builder/site/simulated.ts";
import { simulatedProvider } from "../../../src/sandbox/simulated.ts";
import { actorLayers } from "../../../src/service.ts";
import { Admissions } from "../../../src/store/ports/triggers/admissions.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { postgresStore } from "../../../src/database.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import { inserted, openBare, type Bare } from "./bare.ts";
import { quantile, rounded } from "./figures.ts";
import { manifestDueAt, manifestOf, spread, uuid } from "./manifests.ts";
import { commitManifest, makeAccount, makeRepository, newProject } from "../../support/world/world.ts";

/** What the parent asks for. */
export interface LatenessOrder {
  readonly url: string;
  /** Triggers that fall due together, and how many projects share them. */
  readonly due: number;
  readonly projects: number;
  /** Triggers that are held besides and not due. */
  readonly others: number;
  /** Rounds that count; one before them warms everything up. */
  readonly rounds: number;
}

/** Milliseconds from the due instant, or from the first insert, to each row's commit. */
export interface Spent {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface LatenessRound {
  readonly service: Spent;
  /** One insert each over ten connections. */
  readonly each: Spent;
  /** All of them in one statement. */
  readonly together: number;
}

const ACCOUNT = uuid(1, 1);
const USER = uuid(2, 1);
const SLOT_NONE = 0;
/** From the last manifest that was read to its instant, about. */
const LEAD_MS = 2_000;
/** How long the first round's manifests may take to be read, for each trigger. */
const FIRST_MS_EACH = 10;
/** Rows that are still missing after this time are lost. */
const PATIENCE_MS = 60_000;

/** When rows of an instant were committed, as the service learnt it. */
type Commits = Map<number, number[]>;

const spent = (values: readonly number[]): Spent => ({
  p50: rounded(quantile(values, 0.5)),
  p99: rounded(quantile(values, 0.99)),
  max: rounded(Math.max(...values)),
});

/** The store's admissions, whose answers are written down: an answer comes after the commit. */
const observed = (commits: Commits) =>
  Layer.effect(
    Admissions,
    Effect.map(Admissions, (admissions) =>
      Admissions.of({
        ...admissions,
        admit: (accountId, requests) =>
          Effect.tap(admissions.admit(accountId, requests), () =>
            Effect.map(Clock.currentTimeMillis, (now) => {
              for (const { fire } of requests)
                if (fire?.scheduledFor != null) commits.get(fire.scheduledFor)?.push(now);
            }),
          ),
      }),
    ),
  );

const serviceOver = (url: string, commits: Commits) => {
  const store = postgresStore.pipe(
    Layer.provideMerge(Layer.effectDiscard(migrate)),
    Layer.provideMerge(Client.layer({ url })),
  );
  const outside = Layer.mergeAll(store, simulatedBackend);
  return actorLayers({
    config: readConfig({ PLATFORM_QUEUE_MAX: "10000000" }, "/"),
    nodeId: uuid(9, 1),
    publicUrl: "http://localhost:8080",
    ports: Layer.mergeAll(
      observed(commits),
      simulatedSite,
      simulatedProvider({ bootMs: 5 }),
      simulatedDaemon,
      new SimulatedSaves().layer,
      keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
      singleRunner,
    ).pipe(Layer.provideMerge(outside)),
  }).pipe(Layer.provideMerge(outside));
};

let projects = 0;

/** A project with a manifest that was pushed, and read as after any push. */
const push = Effect.fnUntraced(function* (manifest: string) {
  const id = uuid(4, (projects += 1));
  yield* makeRepository(id);
  const now = yield* Clock.currentTimeMillis;
  const owner = { accountId: ACCOUNT, userId: USER };
  const project = yield* (yield* Projects).create(
    newProject(owner, { id, name: `project-${projects}`, now }),
  );
  yield* commitManifest(id, manifest);
  yield* (yield* Manifests).sync(project);
});

const until = Effect.fnUntraced(function* (what: string, holds: Effect.Effect<boolean>) {
  const deadline = (yield* Clock.currentTimeMillis) + PATIENCE_MS;
  while (!(yield* holds)) {
    if ((yield* Clock.currentTimeMillis) > deadline) return yield* Effect.die(new Error(`not seen: ${what}`));
    yield* Effect.sleep("5 millis");
  }
});

const scheduled = (count: number) =>
  Effect.gen(function* () {
    const { state } = yield* Scheduler;
    yield* until(
      `${count} triggers in the schedules`,
      Effect.map(state, (known) => known.scheduled >= count),
    );
  });

interface Round {
  readonly order: LatenessOrder;
  readonly number: number;
  readonly commits: Commits;
  readonly bare: Bare;
  /** From a round's first manifest to its instant. */
  readonly leadMs: number;
}

const round = Effect.fnUntraced(function* ({ order, number, commits, bare, leadMs }: Round) {
  const each = Math.ceil(order.due / order.projects);
  const sizes = Array.from({ length: order.projects }, (_, index) =>
    Math.min(each, order.due - index * each),
  );
  const began = yield* Clock.currentTimeMillis;
  const due = Math.ceil((began + leadMs) / 1000) * 1000;
  const rows: number[] = [];
  commits.set(due, rows);
  for (const size of sizes) yield* push(manifestDueAt(due, size));
  yield* scheduled(order.others + order.due * (number + 1));
  const neededMs = (yield* Clock.currentTimeMillis) - began;
  yield* Effect.promise(() => bare.checkpoint());
  if ((yield* Clock.currentTimeMillis) >= due) return yield* Effect.die(new Error("the lead was too short"));
  yield* until(
    `${order.due} rows`,
    Effect.sync(() => rows.length >= order.due),
  );
  yield* Effect.promise(() => bare.holdsAll(due, order.due));
  const service = spent(rows.map((at) => at - due));
  const plain = yield* Effect.promise(() => inserted(bare, due));
  const result: LatenessRound = { service, each: spent(plain.each), together: rounded(plain.together) };
  return { result, neededMs };
});

const measure = Effect.fnUntraced(function* (order: LatenessOrder) {
  const commits: Commits = new Map();
  const services = yield* Layer.build(serviceOver(order.url, commits));
  const bare = yield* Effect.acquireRelease(
    Effect.promise(() => openBare(new pg.Pool({ connectionString: order.url, min: 10, max: 10 }))),
    ({ close }) => Effect.promise(close),
  );
  return yield* Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis;
    const ids = { accountId: ACCOUNT, userId: USER, tokenId: uuid(3, 1), tokenHash: "0".repeat(64) };
    yield* makeAccount({ ...ids, cap: SLOT_NONE, now });
    for (const [number, count] of spread(order.others).entries())
      yield* push(manifestOf(number, { triggers: count, quietAt: now }));
    yield* scheduled(order.others);
    const results: LatenessRound[] = [];
    let leadMs = LEAD_MS + order.due * FIRST_MS_EACH;
    for (let number = 0; number <= order.rounds; number += 1) {
      const { result, neededMs } = yield* round({ order, number, commits, bare, leadMs });
      if (number > 0) results.push(result);
      // A busy machine reads manifests slower, and not always at the same speed.
      leadMs = LEAD_MS + 2 * neededMs;
    }
    return results;
  }).pipe(Effect.provideContext(services));
});

process.on("message", (order: LatenessOrder) => {
  Effect.runPromise(Effect.scoped(measure(order))).then(
    (rounds) => process.send?.(rounds),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    },
  );
});
