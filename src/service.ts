/**
 * The service over its ports, a line each part: features, actors, duties, endpoints. The caller, serve.ts or a test, chooses the
 * adapters.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import type { Sharding } from "effect/cluster";
import { HttpRouter } from "effect/http";
import { HttpApiBuilder } from "effect/http-api";
import { accountActors } from "./actors/account.ts";
import { actorsLayer, placementLayer } from "./actors/cluster.ts";
import { conversationActors } from "./actors/conversation.ts";
import type { Lease } from "./actors/lease.ts";
import { sandboxActors } from "./actors/sandbox.ts";
import { sandboxGateway } from "./actors/sandboxes/spec.ts";
import { sessionActors } from "./actors/session.ts";
import { timersLayer } from "./actors/timers.ts";
import { triggerActors } from "./actors/trigger.ts";
import { Api, OWN_TOOLS, routeTable } from "./assembly/api.ts";
import type { BuildSite } from "./builder/site/port.ts";
import type { Store } from "./assembly/database.ts";
import { tokenHash } from "./domain/ids.ts";
import { localPreviews } from "./domain/session/preview.ts";
import { coreDuties } from "./duties/core.ts";
import { activity } from "./features/activity/feature.ts";
import { pruneResults } from "./features/approvals/duty.ts";
import { approvals } from "./features/approvals/feature.ts";
import { changeRequests } from "./features/change-requests/feature.ts";
import { pushHeard } from "./features/change-requests/pushed.ts";
import { connectors } from "./features/connectors/feature.ts";
import { environments } from "./features/environments/feature.ts";
import { modelProviders } from "./features/model-providers/feature.ts";
import { notifications } from "./features/notifications/feature.ts";
import { showOutbound } from "./features/notifications/metrics.ts";
import { spend } from "./features/spend/feature.ts";
import { subscriptions } from "./features/subscriptions/feature.ts";
import type { GitBackend } from "./git/port.ts";
import type { SmartHttp } from "./git/server/smart-http.ts";
import { Proxies } from "./http/callers/acting.ts";
import { authorizedLayer } from "./http/callers/authorize.ts";
import { openingsLayer } from "./http/callers/openings.ts";
import { GitEndpoint, gitRoute } from "./http/git/git.ts";
import { coreHandlers } from "./http/handlers/core.ts";
import { Addresses, ImportPolicy, Limits, ThisNode } from "./http/limits.ts";
import { liveRoutes } from "./http/live/live.ts";
import { watchGauges } from "./http/operating/gauges.ts";
import { metricsRoute } from "./http/operating/metrics.ts";
import { Readiness, systemRoutes } from "./http/operating/system.ts";
import { dashboardRoutes } from "./http/pages/dashboard.ts";
import { InstallationLook } from "./http/pages/look.ts";
import { issueCode, openingLink } from "./http/pages/dashboard-sessions.ts";
import { docsRoute } from "./http/pages/docs.ts";
import { guideRoutes } from "./http/pages/guide.ts";
import type { Content } from "./http/pages/page-bundle.ts";
import { PAGE_DIRECTORY } from "./http/pages/page-files.ts";
import { attachmentRoutes } from "./http/raw/attachments.ts";
import { deviceLoginRoutes } from "./http/raw/device-logins.ts";
import { executorRoutes } from "./http/raw/executor.ts";
import { OwnTools } from "./http/raw/own-tools.ts";
import { makePreviews } from "./http/relay/preview.ts";
import { makeRelay } from "./http/relay/relay.ts";
import { makeTerminals } from "./http/relay/terminal.ts";
import { RouteNames } from "./http/route-name.ts";
import { exactPaths } from "./http/routes.ts";
import { firstMatch, type Listener, type RawRoutes } from "./http/server.ts";
import { makeReceiver } from "./http/webhooks/webhooks.ts";
import { bootstrap } from "./installation/first-account.ts";
import type { DaemonClient } from "./sandbox/daemon.ts";
import type { SandboxProvider } from "./sandbox/port.ts";
import type { Saves } from "./saves/port.ts";
import type { Actors, Placement } from "./services/actors.ts";
import { Refusals } from "./services/audit.ts";
import { directoryLayer } from "./services/directory.ts";
import { Doubts } from "./services/doubt.ts";
import { dutyPeriods } from "./services/duties.ts";
import { type Building, buildingLayer } from "./services/environments/building.ts";
import { environmentsLayer } from "./services/environments/environments.ts";
import { type FeatureOptions, slot } from "./services/feature.ts";
import type { Keyring } from "./services/keyring.ts";
import { PageAddress } from "./services/page-address.ts";
import { pausingLayer } from "./services/pausing.ts";
import { manifestsLayer } from "./services/projects/manifests.ts";
import { modelPolicyLayer } from "./services/projects/models.ts";
import { Runtimes } from "./services/projects/runtimes.ts";
import { activityLayer, type Activity } from "./services/sessions/activity.ts";
import { bootPlacesLayer } from "./services/sessions/boot-places.ts";
import { conversationHubLayer } from "./services/sessions/conversation-hub.ts";
import { LaterLimits, startLimitsLayer } from "./services/sessions/start-limits.ts";
import { warmPoolLayer } from "./services/sessions/warm-pool.ts";
import { transitionRecordLayer } from "./services/transition-record.ts";
import { admitterLayer } from "./services/triggers/admission.ts";
import { cursorReadsLayer } from "./services/triggers/cursors.ts";
import { firingLayer } from "./services/triggers/firing.ts";
import { RequestBranches } from "./services/triggers/request-branches.ts";
import { RoomWishes } from "./services/triggers/room-wishes.ts";
import { webhookRecordLayer } from "./services/triggers/webhook-record.ts";
import type { Config } from "./settings/config.ts";

/** All ports through which the service touches the world. */
export type Ports =
  | Store
  | GitBackend
  | BuildSite
  | SandboxProvider
  | DaemonClient
  | Saves
  | Keyring
  | Sharding.Sharding
  | Lease;

export interface ServiceOptions<E> {
  readonly config: Config;
  readonly dataDir: string;
  /** Free bytes on its disk. Null if the system does not say. */
  readonly diskFreeBytes: Effect.Effect<number | null>;
  readonly nodeId: string;
  readonly publicUrl: string;
  /** The operator's, as a file of the page. Absent: none. */
  readonly logo?: Content | null;
  /** The smart HTTP protocol over the hosted repositories. */
  readonly git: SmartHttp;
  readonly ports: Layer.Layer<Ports, E>;
  readonly listener: Listener;
  /** Routes from and to the other nodes (nodes/endpoint.ts). */
  readonly nodeRoutes: Effect.Effect<RawRoutes, never, Ports | Activity | Building | Scope.Scope>;
}

/** The service's name inside sandboxes, whatever its address outside (api.md 8). */
const INTERNAL_URL = "http://platform.internal";

/** The service's version, from its package. */
export const { version: VERSION } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
) as { readonly version: string };

/** How actors are reached, and which of them live here. */
export type AddressBook = Layer.Layer<Actors | Placement, never, Sharding.Sharding>;

const clusterAddresses: AddressBook = Layer.mergeAll(actorsLayer, placementLayer);

/** A line each. `feature.ts` of a feature has its slots, services/feature.ts their meaning. */
const allFeatures = (options: FeatureOptions) => [
  activity,
  approvals,
  changeRequests(options),
  connectors,
  environments(options),
  modelProviders,
  notifications(options),
  spend,
  subscriptions,
];

type ActorOptions<E> = Pick<ServiceOptions<E>, "config" | "nodeId" | "publicUrl" | "ports"> & {
  readonly ready?: Effect.Effect<void>;
  readonly addressBook?: AddressBook;
};

/** Ports, then actors over them, then the services that the endpoints use: the service without HTTP. */
export const actorLayers = <E>({
  ready = Effect.void,
  addressBook = clusterAddresses,
  ...options
}: ActorOptions<E>) => {
  const { config, nodeId, publicUrl, ports } = options;
  const features = allFeatures({ ...config, nodeId, publicUrl });
  const entity = { maxIdleMs: config.actorIdleMs };
  const spec = { ...config, nodeId, internalUrl: INTERNAL_URL, gateway: sandboxGateway(config.llm) };

  const duties = Layer.merge(
    coreDuties({ ...spec, ready, features: pruneResults }),
    slot(features, "duties"),
  );
  const actors = Layer.mergeAll(
    sessionActors({ ...entity, nodeId }),
    sandboxActors({ ...entity, ...spec }),
    accountActors({ ...entity, bootTimeoutMs: config.bootTimeoutMs }),
    triggerActors({ ...entity, ...config }),
    conversationActors(entity),
    slot(features, "actors"),
  );
  const starting = Layer.mergeAll(firingLayer(config), startLimitsLayer, manifestsLayer);
  const directory = Layer.mergeAll(
    activityLayer,
    admitterLayer,
    directoryLayer,
    cursorReadsLayer,
    timersLayer,
    environmentsLayer({ nodeId, refreshMs: config.environmentRefreshMs }),
    buildingLayer({ nodeId, atOnce: config.buildsAtOnce, basesMs: config.environmentBasesMs }),
  );
  const sharedLayer = Layer.mergeAll(
    transitionRecordLayer,
    RequestBranches.layer,
    bootPlacesLayer(config.bootsAtOnce),
    warmPoolLayer({ nodeId, ...config }),
    conversationHubLayer,
    modelPolicyLayer(config),
    slot(features, "answers"),
  );
  // Below all that may have a doubt, wish for room or be paused.
  const ground = Layer.mergeAll(
    Doubts.layer,
    RoomWishes.layer,
    LaterLimits.layer,
    Layer.succeed(PageAddress, publicUrl),
    Layer.succeed(Runtimes, config.runtimes),
    pausingLayer,
  );
  return duties.pipe(
    Layer.provideMerge(actors),
    Layer.provideMerge(starting),
    Layer.provideMerge(directory),
    Layer.provideMerge(sharedLayer),
    Layer.provideMerge(addressBook),
    Layer.provideMerge(ground),
    Layer.provideMerge(ports),
  );
};

const settings = <E>(
  { config, dataDir, diskFreeBytes, nodeId, publicUrl, git, listener, logo = null }: ServiceOptions<E>,
  hasStarted: () => boolean,
) =>
  Layer.mergeAll(
    Layer.succeed(Limits, config),
    Layer.succeed(Addresses, {
      publicUrl,
      internalUrl: INTERNAL_URL,
      previews: config.previewUrl ?? localPreviews(listener.port),
    }),
    Layer.succeed(InstallationLook, { name: config.name, logo }),
    Layer.succeed(Proxies, config.trustedProxies),
    Layer.succeed(ImportPolicy, { roots: config.importRoots, allowHosts: config.gitAllowHosts, dataDir }),
    Refusals.layer,
    Layer.succeed(RouteNames, routeTable.name),
    Layer.succeed(GitEndpoint, git),
    Layer.succeed(OwnTools, OWN_TOOLS),
    Layer.succeed(Readiness, { started: hasStarted }),
    Layer.succeed(ThisNode, {
      id: nodeId,
      version: VERSION,
      periods: dutyPeriods(config),
      diskFreeBytes,
    }),
  );

const routes = (features: ReturnType<typeof allFeatures>) =>
  Layer.mergeAll(
    HttpApiBuilder.layer(Api, { openapiPath: "/openapi.json" }).pipe(
      Layer.provide(Layer.merge(coreHandlers, slot(features, "handlers"))),
    ),
    docsRoute(Api),
    gitRoute(pushHeard),
    liveRoutes,
    attachmentRoutes,
    deviceLoginRoutes,
    executorRoutes,
    systemRoutes,
    metricsRoute(showOutbound),
    guideRoutes(fileURLToPath(new URL("../docs", import.meta.url))),
    dashboardRoutes(PAGE_DIRECTORY),
    slot(features, "routes"),
  ).pipe(Layer.provide(authorizedLayer));

/**
 * Runs the service in the caller's scope. When it returns, actors are awake and requests are answered.
 *
 * @returns the first account's token if this start created it, to be shown once, and a link that signs a browser in
 * with it; otherwise null.
 */
export const runService = Effect.fnUntraced(function* <E>(options: ServiceOptions<E>) {
  let hasStarted = false;
  const features = allFeatures({ ...options.config, nodeId: options.nodeId, publicUrl: options.publicUrl });
  const ready = yield* Deferred.make<void>();
  const context = yield* Layer.build(
    Layer.mergeAll(
      settings(options, () => hasStarted),
      NodeHttpServer.layerHttpServices,
      webhookRecordLayer,
      slot(features, "beside"),
    ).pipe(
      Layer.provideMerge(openingsLayer),
      Layer.provideMerge(actorLayers({ ...options, ready: Deferred.await(ready) })),
    ),
  );
  return yield* Effect.provideContext(
    Effect.gen(function* () {
      const token = yield* bootstrap(options.config);
      yield* watchGauges;
      const raw = [
        yield* makePreviews,
        yield* makeReceiver,
        yield* makeTerminals,
        yield* makeRelay,
        yield* options.nodeRoutes,
      ];
      yield* options.listener.attach(
        yield* exactPaths(HttpRouter.toHttpEffect(routes(features))),
        firstMatch(raw),
      );
      hasStarted = true;
      yield* Deferred.succeed(ready, undefined);
      if (token === null) return null;
      const code = yield* issueCode(tokenHash(token));
      return { token, link: openingLink(options.publicUrl, code) };
    }),
    context,
  );
});
