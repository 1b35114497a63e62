/** One node that builds for one project, whose actors live elsewhere. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { Actors } from "../../../src/services/actors.ts";
import { BuildSite, type SiteRequest } from "../../../src/builder/site/port.ts";
import { SimulatedSite } from "../../../src/builder/site/simulated.ts";
import { simulatedBackend } from "../../twins/git/repositories.ts";
import { environmentBuild, type EnvironmentBuildEvent } from "../../../src/machines/environment-build.ts";
import { Building, buildingLayer, BuildingElsewhere } from "../../../src/services/environments/building.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import {
  EnvironmentBuilds,
  type EnvironmentBuild,
  type NewBuild,
} from "../../../src/store/ports/projects/environment-builds.ts";
import { openBuild, stepBuild } from "./environment-builds.ts";
import { commitDockerfile } from "./environments.ts";
import { makeWorldWithRepository, NOON, type World } from "./world.ts";

export interface BuildingWish {
  readonly atOnce?: number;
  /** Wraps the ledger that the builds write to. */
  readonly ledger?: (builds: EnvironmentBuilds["Service"]) => EnvironmentBuilds["Service"];
  readonly elsewhere?: Context.Service.Shape<typeof BuildingElsewhere>;
}

/** The builds' actors live on another node: here, an event is a step in the ledger. */
const actorsElsewhere = (told: [string, EnvironmentBuildEvent["type"]][]) =>
  Layer.effect(
    Actors,
    Effect.gen(function* () {
      const builds = yield* EnvironmentBuilds;
      return yield* Effect.map(
        Layer.build(
          Layer.mock(Actors, {
            environmentBuild: (id, event) =>
              Effect.gen(function* () {
                told.push([id, event.type]);
                yield* Effect.orDie(stepBuild(id, [event]));
                const loaded = yield* builds.memory.load(id);
                return { accepted: true, snapshot: loaded?.snapshot ?? environmentBuild.start({}).snapshot };
              }).pipe(Effect.provideService(EnvironmentBuilds, builds)),
          }),
        ),
        (context) => Context.get(context, Actors),
      );
    }),
  );

/** One node that builds for one project. `began` has the builds in the order in which the site began them. */
export const openBuildingNode = Effect.fnUntraced(function* ({
  atOnce = 1,
  ledger = (builds) => builds,
  elsewhere,
}: BuildingWish = {}) {
  yield* TestClock.setTime(NOON);
  const site = new SimulatedSite();
  const began: string[] = [];
  const told: [string, EnvironmentBuildEvent["type"]][] = [];
  const output = { text: "" };
  const given: SiteRequest["secrets"][] = [];
  const twins = yield* Layer.build(
    Layer.mergeAll(
      memoryStore,
      simulatedBackend,
      keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
      Layer.succeed(BuildSite, {
        ...site.service,
        build: (request, report) =>
          Effect.suspend(() => {
            began.push(request.id);
            given.push(request.secrets);
            return Effect.andThen(
              report({ kind: "log", text: output.text }),
              site.service.build(request, report),
            );
          }),
      }),
    ),
  );
  const ports = Context.add(twins, EnvironmentBuilds, ledger(Context.get(twins, EnvironmentBuilds)));
  const inPorts = Effect.provideContext(ports);
  const world: World = yield* inPorts(makeWorldWithRepository(20));
  const layer = buildingLayer({ nodeId: "node-1", atOnce, basesMs: 3_600_000 }).pipe(
    Layer.provide(actorsElsewhere(told)),
    Layer.provide(elsewhere === undefined ? Layer.empty : Layer.succeed(BuildingElsewhere, elsewhere)),
    Layer.provide(Layer.succeedContext(ports)),
  );
  const building = Context.get(yield* Layer.build(layer), Building);
  const builds = Context.get(ports, EnvironmentBuilds);
  const commit = (text: string) => inPorts(commitDockerfile(world.projectId, text));
  /** A build of a Dockerfile with this text. */
  const open = Effect.fnUntraced(function* (text: string, fields: Partial<NewBuild> = {}) {
    const source = yield* commit(text);
    const opened = yield* inPorts(openBuild(world.projectId, { source, ...fields }));
    return opened?.build ?? (yield* Effect.die("the build was not opened"));
  });
  const run = (build: EnvironmentBuild) => Effect.forkChild(building.run(build), { startImmediately: true });
  const log = Effect.fnUntraced(function* ({ id }: EnvironmentBuild) {
    return yield* builds.log(id, { after: 0, limit: 1000 });
  });
  return { site, began, given, told, output, world, building, builds, inPorts, open, run, log };
});
