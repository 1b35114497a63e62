/**
 * The composition root: the only file that names concrete adapters. `npm start` serves until SIGTERM or SIGINT, then
 * drains; what runs in sandboxes goes on and is found again at the next start (api.md 9).
 */
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { HttpRouter } from "effect/http";
import { HttpApiBuilder, HttpApiScalar } from "effect/http-api";
import { bundleDaemon } from "../daemon/bundle.ts";
import { accountActors } from "./actors/account.ts";
import { admitterLayer } from "./actors/admission.ts";
import { actorsLayer, singleRunner } from "./actors/cluster.ts";
import { firingLayer } from "./actors/firing.ts";
import { keyringLayer } from "./actors/keyring.ts";
import { manifestsLayer } from "./actors/manifests.ts";
import { recoveryLayer } from "./actors/recovery.ts";
import { sandboxActors } from "./actors/sandbox.ts";
import { sessionActors } from "./actors/session.ts";
import { agentBinaries } from "./agent-binaries.ts";
import { readConfig, type Config } from "./config.ts";
import { hostedBackend } from "./git/hosted.ts";
import { smartHttp } from "./git/smart-http.ts";
import { Api } from "./http/api/api.ts";
import { answeringLayer, authorizedLayer } from "./http/authorize.ts";
import { bodyBudgetLayer } from "./http/body-budget.ts";
import { changeRequestsHandlers } from "./http/change-requests.ts";
import { dashboardRoutes } from "./http/dashboard.ts";
import { dashboardSessionsLayer } from "./http/dashboard-sessions.ts";
import { GitEndpoint, gitRoute } from "./http/git.ts";
import { identityHandlers } from "./http/identity.ts";
import { Addresses, ImportPolicy, Limits } from "./http/limits.ts";
import { liveRoutes } from "./http/live.ts";
import { projectsHandlers } from "./http/projects.ts";
import { sandboxHandlers } from "./http/sandbox.ts";
import { secretsHandlers } from "./http/secrets.ts";
import { openListener } from "./http/server.ts";
import { sessionsHandlers } from "./http/sessions.ts";
import { Readiness, systemRoutes } from "./http/system.ts";
import { triggersHandlers } from "./http/triggers.ts";
import { webhookRoute } from "./http/webhooks.ts";
import { openInstallation, type Installation } from "./installation.ts";
import { bootstrap } from "./bootstrap.ts";
import { daemonHttp } from "./sandbox/daemon-http.ts";
import { DEFAULT_LIMITS } from "./sandbox/installation.ts";
import { localProvider } from "./sandbox/local.ts";
import { SandboxProvider } from "./sandbox/port.ts";
import { claimDataDirectory } from "./store/data-directory.ts";
import * as Client from "./store/postgres/client.ts";
import * as Embedded from "./store/postgres/embedded.ts";
import { postgresStore } from "./store/postgres/layer.ts";
import { migrate } from "./store/postgres/migrate.ts";
import { logLayer } from "./telemetry/log.ts";

interface Place {
  readonly config: Config;
  readonly dataDir: string;
  readonly installation: Installation;
  readonly port: number;
  readonly publicUrl: string;
}

/** How sandboxes name this service, whatever its address outside (api.md 8). */
const INTERNAL_URL = "http://platform.internal";
const GATEWAY_HOST = "llm.platform.internal";

const store = ({ config, dataDir }: Place) => {
  const database =
    config.databaseUrl === null ? Embedded.layer(dataDir) : Client.layer({ url: config.databaseUrl });
  return postgresStore.pipe(Layer.provideMerge(Layer.effectDiscard(migrate)), Layer.provideMerge(database));
};

const repositories = ({ dataDir }: Place) => path.join(dataDir, "repositories");

const provider = ({ config, dataDir, installation, port }: Place) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const bundle = path.join(dataDir, "platform-agent.cjs");
      yield* Effect.promise(() => bundleDaemon(bundle));
      return localProvider({
        runDir: path.join(tmpdir(), `platform-${installation.installationId.slice(-12)}`),
        installationId: installation.installationId,
        nodeId: installation.nodeId,
        nodePath: process.execPath,
        daemonBundle: bundle,
        agentCommand: config.agentCommand,
        agentAdapter: config.agentAdapter,
        agentBinaries: agentBinaries(config.agentCommand, config.path),
        limits: DEFAULT_LIMITS,
        serviceUrl: `http://127.0.0.1:${port}`,
        form: config.localForm,
        path: config.path,
      });
    }),
  );

/** The gateway as sandboxes see it: its host by our name, its path as configured. */
const gateway = ({ llm }: Config) => {
  if (llm === null) return null;
  const upstream = new URL(llm.baseUrl);
  const baseUrl = `http://${GATEWAY_HOST}${upstream.pathname.replace(/\/$/, "")}`;
  return { upstream: upstream.origin, baseUrl, apiKey: llm.apiKey, tiers: llm.tiers };
};

/** Ports, then actors over them, then what the endpoints ask. */
const service = (place: Place) => {
  const { config, installation } = place;
  const entity = { maxIdleMs: config.actorIdleMs };
  const ports = Layer.mergeAll(
    store(place),
    hostedBackend({ directory: repositories(place), allowHosts: config.gitAllowHosts }),
    provider(place),
    daemonHttp,
    keyringLayer(installation.secrets),
  );
  const entities = Layer.mergeAll(
    sessionActors({ ...entity, nodeId: installation.nodeId }),
    sandboxActors({
      ...entity,
      internalUrl: INTERNAL_URL,
      egressAllow: config.egressAllow,
      gateway: gateway(config),
    }),
    accountActors({ ...entity, bootTimeoutMs: config.bootTimeoutMs }),
  );
  return recoveryLayer({ intervalMs: config.recoveryIntervalMs }).pipe(
    Layer.provideMerge(
      Layer.mergeAll(firingLayer(config), manifestsLayer, dashboardSessionsLayer, bodyBudgetLayer),
    ),
    Layer.provideMerge(Layer.mergeAll(admitterLayer, entities)),
    Layer.provideMerge(actorsLayer.pipe(Layer.provideMerge(singleRunner))),
    Layer.provideMerge(ports),
  );
};

const settings = (place: Place, started: () => boolean) => {
  const { config, dataDir, publicUrl } = place;
  return Layer.mergeAll(
    Layer.succeed(Limits, config),
    Layer.succeed(Addresses, { publicUrl, internalUrl: INTERNAL_URL }),
    Layer.succeed(ImportPolicy, { roots: config.importRoots, allowHosts: config.gitAllowHosts, dataDir }),
    Layer.succeed(GitEndpoint, smartHttp({ directory: repositories(place) })),
    Layer.succeed(Readiness, { started }),
  );
};

const handlers = Layer.mergeAll(
  identityHandlers,
  projectsHandlers,
  sessionsHandlers,
  secretsHandlers,
  triggersHandlers,
  changeRequestsHandlers,
  sandboxHandlers,
);

const routes = Layer.mergeAll(
  HttpApiBuilder.layer(Api, { openapiPath: "/openapi.json" }).pipe(Layer.provide(handlers)),
  HttpApiScalar.layer(Api, { path: "/docs" }),
  webhookRoute,
  gitRoute,
  liveRoutes,
  systemRoutes,
  dashboardRoutes(fileURLToPath(new URL("../dashboard", import.meta.url))),
).pipe(Layer.provide([authorizedLayer, answeringLayer]));

const noRaw = { request: () => false, upgrade: () => false };

/**
 * Runs the whole service in the caller's scope: listening, actors awake, ready when it returns.
 *
 * @returns the address it answers at.
 */
export const runService = Effect.fnUntraced(function* (config: Config) {
  const dataDir = yield* claimDataDirectory(config.dataDir);
  mkdirSync(path.join(dataDir, "repositories"), { recursive: true, mode: 0o700 });
  const installation = openInstallation(dataDir, config.masterKey, yield* Clock.currentTimeMillis);
  const listener = yield* openListener(config);
  const publicUrl = config.publicUrl ?? `http://${config.host}:${listener.port}`;
  const place: Place = { config, dataDir, installation, port: listener.port, publicUrl };
  let started = false;
  const context = yield* Layer.build(
    Layer.mergeAll(
      settings(place, () => started),
      NodeHttpServer.layerHttpServices,
    ).pipe(Layer.provideMerge(service(place))),
  );
  yield* Effect.provideContext(
    Effect.gen(function* () {
      const token = yield* bootstrap(config, installation.secrets.current);
      const app = yield* HttpRouter.toHttpEffect(routes);
      yield* listener.attach(app, noRaw);
      started = true;
      yield* Effect.logInfo((yield* SandboxProvider).summary);
      if (token !== null) yield* Effect.logInfo(`first start: the account-wide token, shown once: ${token}`);
    }),
    context,
  );
  return publicUrl;
});

if (import.meta.main) {
  const program = Effect.gen(function* () {
    const config = readConfig(process.env, process.cwd());
    const url = yield* runService(config);
    // The one line on standard output: whoever started the service waits for it.
    process.stdout.write(`ready ${url}\n`);
    return yield* Effect.never;
  });
  NodeRuntime.runMain(Effect.scoped(program).pipe(Effect.provide(logLayer(process.stderr.isTTY))));
}
