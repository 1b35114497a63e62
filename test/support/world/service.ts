/** The whole service without its HTTP over twins and a test clock, with one project whose manifest a test writes. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { simulatedSite } from "../../../src/builder/site/simulated.ts";
import { singleRunner } from "../../../src/actors/cluster.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { readConfig } from "../../../src/settings/config.ts";
import { simulatedBackend } from "../../twins/git/repositories.ts";
import { simulatedDaemon } from "../../../src/sandbox/daemon-simulated.ts";
import { simulatedProvider } from "../../../src/sandbox/simulated.ts";
import { actorLayers } from "../../../src/service.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { Fires, type Fire } from "../../../src/store/ports/triggers/fires.ts";
import type { Page } from "../../../src/store/ports/page.ts";
import { SimulatedSaves } from "../../twins/saves.ts";
import { inOneLife } from "./clock.ts";
import { makeWorldWithRepository, NUMBERED, numbered, pushManifest } from "./world.ts";

export const PROJECT = NUMBERED.projectId;

export const twins = Layer.mergeAll(memoryStore, simulatedBackend);

export const serviceOver = (memory: typeof twins, saves = new SimulatedSaves()) =>
  actorLayers({
    config: readConfig({}, "/"),
    nodeId: numbered(9),
    publicUrl: "http://localhost:8080",
    ports: Layer.mergeAll(
      simulatedProvider({ bootMs: 10 }),
      simulatedDaemon,
      simulatedSite,
      saves.layer,
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

export const push = (text: string) => pushManifest(PROJECT, text);

/** An account with a project whose manifest is `text`, read. */
export const projectWith = Effect.fnUntraced(function* (text: string) {
  yield* makeWorldWithRepository({ ...NUMBERED, cap: 1000 });
  yield* push(text);
});

export type Services = Layer.Success<ReturnType<typeof serviceOver>>;

/** Runs a test over one life of the service. */
export const inLife = <E>(
  memory: typeof twins,
  test: Effect.Effect<void, E, Services>,
  saves?: SimulatedSaves,
) => inOneLife(serviceOver(memory, saves), test);

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
