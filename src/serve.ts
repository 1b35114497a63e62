/**
 * The composition root: the service as `npm start` runs it, with its adapters. It serves until SIGTERM or SIGINT, then
 * drains. Sandboxes keep running, and the next start finds them again (api.md 9).
 */
import { flushCompileCache } from "node:module";
import * as NodeRuntime from "@effect/platform-node/NodeRuntime";
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import { thrownText } from "./ground/thrown.ts";
import { keyringLayer } from "./services/keyring.ts";
import {
  buildSite,
  gitHost,
  hostedIn,
  type Place,
  repositories,
  runner,
  sandboxes,
  savedWork,
  store,
  waysOut,
  withDoor,
  withPlaces,
} from "./assembly/adapters.ts";
import { NotBuilt } from "./ground/build-cache.ts";
import { upstreamsLayer } from "./services/projects/upstreams.ts";
import { readConfig, type Config } from "./settings/config.ts";
import { databaseRefusal } from "./installation/database-refusal.ts";
import { dialAddress } from "./domain/service/address.ts";
import { endStarter } from "./starter/starter.ts";
import { GitBackend } from "./git/port.ts";
import { repositoriesIn } from "./git/repository/repository-path.ts";
import { requireGit } from "./git/run.ts";
import { countBuffersWithHeap } from "./ground/heap.ts";
import { readLogo } from "./http/pages/logo.ts";
import { loadProtocol } from "./http/raw/executor.ts";
import { routeTable } from "./assembly/api.ts";
import { openListener } from "./http/server.ts";
import { closeInherited } from "./ground/inherited.ts";
import { makeNodeRoutes } from "./nodes/endpoint.ts";
import { nodeLayers } from "./nodes/layer.ts";
import { keepFirstToken, openInstallation, readKey } from "./store/installation.ts";
import { confirmMasterKey, openMasterKeys } from "./installation/master-keys.ts";
import { openRunDirectory, runDirectoryPath } from "./sandbox/machine/disk/run-directory.ts";
import { SandboxProvider } from "./sandbox/port.ts";
import { runService, VERSION } from "./service.ts";
import { claimDataDirectory, freeBytes } from "./store/data-directory.ts";
import { ModelDoor } from "./sandbox/model-door.ts";
import { Nodes } from "./store/ports/nodes.ts";
import { claimRunDirectory } from "./store/run-directory-claim.ts";
import { inspectLayer } from "./http/inspect/inspect.ts";
import { logLayer } from "./telemetry/log.ts";
import { otlpLayer } from "./telemetry/otlp.ts";
import { metricsLayer } from "./telemetry/metrics-page.ts";

/** Settings and keys refuse a start by throwing. That is an error for the operator, not a defect. */
const refusable = <A>(read: () => A) => Effect.try({ try: read, catch: (error) => error });

/** Only this data directory owns the sandboxes of the installation. A copy of the directory does not. */
const ownSandboxes = Effect.fnUntraced(function* (dataDir: string, installationId: string) {
  const runDir = runDirectoryPath(installationId);
  yield* Effect.tryPromise({ try: () => openRunDirectory(runDir), catch: (error) => error });
  yield* claimRunDirectory({ runDir, dataDir });
});

const isOnThisMachine = ({ sandboxProvider }: Config): boolean =>
  sandboxProvider !== "simulated" && sandboxProvider !== "kubernetes";

/** The message names the setting or directory that the error is about. */
const explainedStore = (place: Place) =>
  Layer.effectContext(
    Effect.mapError(Layer.build(store(place)), (error) =>
      databaseRefusal(place.config, place.dataDir, error),
    ),
  );

/**
 * The token goes to a person at a terminal, otherwise into a file: programs that read the log must not see it
 * (threats.md I16).
 */
const showToken = Effect.fnUntraced(function* (dataDir: string, first: { token: string; link: string }) {
  const { token, link } = first;
  if (process.stderr.isTTY) {
    process.stderr.write(
      `This is the first start. Open the dashboard with this link. It works once, for five minutes:\n${link}\n` +
        `The account's access token, shown once. It signs you in later:\n${token}\n`,
    );
    return;
  }
  const file = yield* refusable(() => keepFirstToken(dataDir, token));
  yield* Effect.logInfo(`first start; copy the account's access token from ${file}, then delete the file`);
});

const serveWith = Effect.fnUntraced(function* (config: Config) {
  yield* Effect.forEach(config.unknownSettings, (line) => Effect.logWarning(line), { discard: true });
  const logo = yield* refusable(() => (config.logoFile === null ? null : readLogo(config.logoFile)));
  yield* refusable(() => config.masterKey === null || readKey(config.masterKey, "PLATFORM_MASTER_KEY"));
  yield* requireGit;
  const dataDir = yield* claimDataDirectory(config.dataDir);
  const now = yield* Clock.currentTimeMillis;
  const installation = yield* refusable(() => openInstallation(dataDir, now));
  if (isOnThisMachine(config)) yield* ownSandboxes(dataDir, installation.installationId);
  const listener = yield* openListener(config, routeTable);
  const place: Place = { config, dataDir, installation, port: listener.port, modelDoor: new ModelDoor() };
  // Database and sandboxes start slowly, so they start in parallel.
  const [built] = yield* Effect.all(
    [
      Layer.build(Layer.mergeAll(explainedStore(place), sandboxes(place), gitHost(place), buildSite(place))),
      loadProtocol,
    ],
    { concurrency: "unbounded" },
  );
  const keys = yield* Effect.provideContext(openMasterKeys(dataDir, config), built);
  const keyring = yield* Layer.build(keyringLayer(keys));
  const provider = Context.merge(built, keyring);
  const nodes = yield* Layer.build(
    nodeLayers({
      nodeId: installation.nodeId,
      url: config.nodeUrl ?? `http://${dialAddress(config.host)}:${listener.port}`,
      graceMs: config.nodeGraceMs,
    }).pipe(Layer.provide(Layer.succeedContext(provider))),
  );
  yield* Effect.provideContext(confirmMasterKey(keys), provider);
  const own = Context.merge(provider, nodes);
  const nodeGit = yield* Effect.provide(
    repositories(place, Context.get(nodes, GitBackend)),
    Layer.provide(upstreamsLayer, Layer.succeedContext(provider)),
  );
  const { adopt } = yield* Effect.provideContext(Nodes, provider);
  yield* adopt(installation.nodeId, yield* repositoriesIn(hostedIn(dataDir)));
  const parts = Context.merge(own, nodeGit.ports);
  const saves = yield* Layer.build(Layer.provide(savedWork(place), Layer.succeedContext(parts)));
  const ending = yield* Deferred.make<void>();
  const publicUrl = config.publicUrl ?? `http://${dialAddress(config.host)}:${listener.port}`;
  const first = yield* runService({
    config,
    dataDir,
    nodeId: installation.nodeId,
    publicUrl,
    logo,
    git: withDoor(saves, nodeGit.endpoint),
    ports: Layer.mergeAll(
      Layer.succeedContext(withPlaces(place, Context.merge(parts, saves))),
      waysOut(place).pipe(Layer.provide(Layer.succeedContext(provider))),
      runner(config).pipe(Layer.provide(Layer.succeedContext(provider))),
      config.inspectPort === null
        ? Layer.empty
        : inspectLayer({ port: config.inspectPort }).pipe(Layer.provide(Layer.succeedContext(provider))),
    ),
    listener,
    diskFreeBytes: freeBytes(dataDir),
    nodeRoutes: Effect.provideContext(makeNodeRoutes(Deferred.await(ending)), Context.merge(nodes, saves)),
  });
  const { summary } = yield* Effect.provideContext(SandboxProvider, provider);
  yield* Effect.logInfo(`sandboxes: ${summary}`);
  // Nodes with different zone data may compute different instants (threats.md C10).
  yield* Effect.logInfo(`time zones: IANA ${process.versions["tz"]}, Node ${process.versions.node}`);
  if (first !== null) yield* showToken(dataDir, first);
  // The only line on standard output: programs that start the service wait for it.
  process.stdout.write(`ready ${publicUrl}\n`);
  // Node writes the cache only at a clean exit. Write it now, once for each change of the program.
  flushCompileCache();
  // Requests in flight are answered before the layers that they use are closed (api.md 9).
  return yield* Effect.onInterrupt(Effect.never, () =>
    Effect.andThen(Deferred.succeed(ending, undefined), listener.drain),
  );
});

/** What the operator watches the service by, around all of its parts. */
const telemetry = ({ metricsPort, otlp }: Config) => {
  const traces = otlp === null ? Layer.empty : otlpLayer({ ...otlp, serviceVersion: VERSION });
  return metricsPort === null ? traces : Layer.provideMerge(traces, metricsLayer(metricsPort));
};

const serve = Effect.gen(function* () {
  // The first finalizer runs last: until then, parts of the service need git.
  yield* Effect.addFinalizer(() => Effect.promise(endStarter));
  const config = yield* refusable(() => readConfig(process.env, process.cwd()));
  return yield* Effect.provide(serveWith(config), telemetry(config));
});

/** A refused start tells the operator the reason in a sentence, without a stack trace. */
const exitRefused = (error: unknown): Effect.Effect<never> =>
  Effect.sync(() => {
    process.stderr.write(`${thrownText(error)}\n`);
    return process.exit(1);
  });

/** From settings to shutdown. A refused start ends the process. */
export const service: Effect.Effect<never> = Effect.scoped(serve).pipe(
  Effect.catch(exitRefused),
  // Any part may need the build, so no part's type names this failure.
  Effect.catchDefect((defect) => (defect instanceof NotBuilt ? exitRefused(defect) : Effect.die(defect))),
  Effect.provide(logLayer(process.stderr.isTTY)),
  // No exporter collects spans, and making them costs every statement and request.
  Effect.withTracerEnabled(false),
);

/** Runs the service as this process's program. */
export const run = (program: Effect.Effect<never>): void => {
  closeInherited();
  countBuffersWithHeap();
  NodeRuntime.runMain(program, {
    // After a signal the service shuts down cleanly, as requested: exit 0 (api.md 9).
    teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1),
  });
};
