/** The whole service without its HTTP over twins and a test clock, with one project whose manifest a test writes. */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { TestClock } from "effect/testing";
import { singleRunner } from "../../src/actors/cluster.ts";
import { keyringLayer } from "../../src/services/keyring.ts";
import { Manifests } from "../../src/duties/manifests.ts";
import { readConfig } from "../../src/config.ts";
import { GitBackend } from "../../src/git/port.ts";
import { simulatedBackend, SimulatedRepositories } from "../../src/git/simulated.ts";
import { simulatedDaemon } from "../../src/sandbox/daemon-simulated.ts";
import { simulatedProvider } from "../../src/sandbox/simulated.ts";
import { actorLayers } from "../../src/service.ts";
import { memoryStore } from "../../src/store/memory/layer.ts";
import { Fires } from "../../src/store/ports/fires.ts";
import { Identity } from "../../src/store/ports/identity.ts";
import { Projects } from "../../src/store/ports/projects.ts";
import type { Fire, Page } from "../../src/store/ports/records.ts";

const id = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
export const PROJECT = id(4);
const repository = { projectId: PROJECT };

export const twins = Layer.mergeAll(memoryStore, simulatedBackend);

export const serviceOver = (memory: typeof twins) =>
  actorLayers({
    config: readConfig({}, "/"),
    nodeId: id(9),
    publicUrl: "http://localhost:8080",
    ports: Layer.mergeAll(
      simulatedProvider({ bootMs: 10 }),
      simulatedDaemon,
      keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
      singleRunner,
    ).pipe(Layer.provideMerge(memory)),
  }).pipe(Layer.provideMerge(memory));

export const manifest = (cron: string, extra = "") => `
[[triggers]]
slug = "tick"
type = "cron"
cron = "${cron}"
prompt = "at {{ cron.fired_at }}, before {{ cron.last_fired_at }}"
${extra}`;

export const push = Effect.fnUntraced(function* (text: string) {
  const repositories = yield* SimulatedRepositories;
  yield* repositories.commit(repository, {
    branch: "main",
    onto: null,
    files: { "platform.toml": text },
    subject: "manifest",
  });
  const project = yield* (yield* Projects).get(PROJECT);
  if (project !== null) yield* (yield* Manifests).sync(project);
});

/** An account with a project whose manifest is `text`, read. */
export const projectWith = Effect.fnUntraced(function* (text: string) {
  yield* (yield* Identity).bootstrap({
    accountId: id(1),
    userId: id(2),
    tokenId: id(3),
    tokenHash: "0".repeat(64),
    tier: "free",
    cap: 1000,
    now: 0,
  });
  yield* (yield* GitBackend).create({ projectId: PROJECT, importFrom: null, defaultBranch: "main" });
  yield* (yield* Projects).create({
    id: PROJECT,
    accountId: id(1),
    name: "p",
    repository: { kind: "hosted" },
    defaultBranch: "main",
    createdBy: id(2),
    now: 0,
  });
  yield* push(text);
});

/** Second by second: what becomes ready at an instant runs before the next one. */
export const advance = (seconds: number) =>
  Effect.repeat(TestClock.adjust("1 second"), { times: seconds - 1 });

export type Services = Layer.Success<ReturnType<typeof serviceOver>>;

/** Runs a test over one life of the service, and ends it while the clock goes on: actors at work are given time to end. */
export const inLife = <E>(memory: typeof twins, test: Effect.Effect<void, E, Services>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make();
    const context = yield* Layer.buildWithScope(Layer.fresh(serviceOver(memory)), scope);
    yield* Effect.provideContext(test, context);
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void));
    yield* advance(10);
    yield* Fiber.join(closing);
  });

export const overService = <E>(test: Effect.Effect<void, E, Services>) =>
  Effect.flatMap(Layer.build(Layer.fresh(twins)), (memory) => inLife(Layer.succeedContext(memory), test));

export const everything = { limit: 200, cursor: null, status: null };

/** The whole ledger, oldest instant first: second, status, reason. */
export const rows = Effect.gen(function* () {
  const fires = yield* Fires;
  const all: Fire[] = [];
  for (let cursor: string | null = null, more = true; more;) {
    const page: Page<Fire> = yield* fires.list(PROJECT, { ...everything, slug: null, cursor });
    all.push(...page.items);
    cursor = page.nextCursor;
    more = cursor !== null;
  }
  return all
    .map(({ scheduledFor, status, reason }) => [(scheduledFor ?? Number.NaN) / 1000, status, reason] as const)
    .toSorted(([a], [b]) => a - b);
});

/** Due instants of the ledger, oldest first, in seconds. */
export const fired = Effect.gen(function* () {
  const { items } = yield* (yield* Fires).list(PROJECT, { ...everything, slug: null });
  return items.map(({ scheduledFor }) => (scheduledFor ?? Number.NaN) / 1000).toReversed();
});
