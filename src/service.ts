/** The service over its ports: actors, admission, endpoints. The caller, serve.ts or a test, chooses the adapters. */
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
import { Refusals } from "./services/audit.ts";
import { activityLayer, type Activity } from "./services/sessions/activity.ts";
import { admitterLayer } from "./services/triggers/admission.ts";
import { bootPlacesLayer } from "./services/sessions/boot-places.ts";
import { conversationHubLayer } from "./services/sessions/conversation-hub.ts";
import { requestBranchesLayer } from "./features/change-requests/duty.ts";
import { RequestBranches } from "./services/triggers/request-branches.ts";
import { approvalsLayer, pruneResults } from "./features/approvals/duty.ts";
import { connectorsLayer } from "./features/connectors/duty.ts";
import { baseImagesLayer } from "./features/environments/base-images.ts";
import { oldImagesLayer } from "./features/environments/old-images.ts";
import { DUTIES, DUTY_NAMES, type DutyName } from "./services/duties.ts";
import type { Lease } from "./actors/lease.ts";
import type { Actors, Placement } from "./services/actors.ts";
import { conversationActors } from "./actors/conversation.ts";
import { changeRequestActors } from "./features/change-requests/actor.ts";
import { environmentBuildActors } from "./features/environments/environment-build-actor.ts";
import { actorsLayer, placementLayer } from "./actors/cluster.ts";
import { cursorReadsLayer } from "./services/triggers/cursors.ts";
import { type Building, buildingLayer } from "./services/environments/building.ts";
import { environmentsLayer } from "./services/environments/environments.ts";
import { watchGauges } from "./http/operating/gauges.ts";
import { firingLayer } from "./services/triggers/firing.ts";
import type { Keyring } from "./services/keyring.ts";
import { LaterLimits, startLimitsLayer } from "./services/sessions/start-limits.ts";
import { directoryLayer } from "./services/directory.ts";
import { Runtimes } from "./services/projects/runtimes.ts";
import { AccountModels, PassedUsages } from "./services/projects/account-models.ts";
import { ModelProviders } from "./features/model-providers/ports/model-providers.ts";
import { ModelUsage } from "./features/model-providers/ports/model-usage.ts";
import { subscriptionsHandlers } from "./features/subscriptions/handlers.ts";
import { ownSubscriptionsLayer } from "./features/subscriptions/own.ts";
import { spendHandlers } from "./features/spend/handlers.ts";
import { accountSpendLayer } from "./features/spend/account-spend.ts";
import { ModelPolicy } from "./services/projects/models.ts";
import { manifestsLayer } from "./services/projects/manifests.ts";
import { reconcileLayer } from "./duties/manifests.ts";
import { callApprovalLayer } from "./features/approvals/waiting-calls.ts";
import { showOutbound } from "./features/notifications/metrics.ts";
import { outboundLayer } from "./features/notifications/outbound.ts";
import { spendLayer } from "./features/spend/duty.ts";
import { outboundWebhooksLayer } from "./features/notifications/duty.ts";
import { PageAddress } from "./services/page-address.ts";
import { pausingLayer } from "./services/pausing.ts";
import { pullMirrorLayer, pullRequestsLayer } from "./features/change-requests/pull-requests.ts";
import { proposedWorkLayer } from "./features/change-requests/proposed-work.ts";
import { pushHeard } from "./features/change-requests/pushed.ts";
import { orphansLayer } from "./duties/orphans.ts";
import { peopleLayer } from "./duties/people.ts";
import { recoveryLayer } from "./duties/recovery.ts";
import { Doubts } from "./services/doubt.ts";
import { RoomWishes } from "./services/triggers/room-wishes.ts";
import { retentionLayer } from "./duties/retention.ts";
import { sandboxActors } from "./actors/sandbox.ts";
import { savesLayer } from "./duties/saves.ts";
import { secretsLayer } from "./duties/secrets.ts";
import { schedulerLayer } from "./duties/scheduler.ts";
import { sessionActors } from "./actors/session.ts";
import { sweeperLayer } from "./duties/sweeper.ts";
import { timersLayer } from "./actors/timers.ts";
import { triggerActors } from "./actors/trigger.ts";
import { deletionsLayer } from "./duties/deletions.ts";
import { unclaimedLayer } from "./duties/unclaimed.ts";
import { transitionRecordLayer } from "./services/transition-record.ts";
import { warmPoolLayer } from "./services/sessions/warm-pool.ts";
import { warmPoolDuty } from "./duties/warm-pool.ts";
import { webhookRecordLayer } from "./services/triggers/webhook-record.ts";
import { bootstrap } from "./installation/first-account.ts";
import type { Config } from "./settings/config.ts";
import { tokenHash } from "./domain/ids.ts";
import { MODEL_HOST } from "./domain/sandbox/account-provider.ts";
import { localPreviews } from "./domain/session/preview.ts";
import type { BuildSite } from "./builder/site/port.ts";
import type { GitBackend } from "./git/port.ts";
import type { SmartHttp } from "./git/server/smart-http.ts";
import { Api, OWN_TOOLS, routeTable } from "./api.ts";
import { Proxies } from "./http/callers/acting.ts";
import { authorizedLayer } from "./http/callers/authorize.ts";
import { activityHandlers } from "./features/activity/handlers.ts";
import { approvalsHandlers } from "./features/approvals/handlers.ts";
import { auditHandlers } from "./http/handlers/audit.ts";
import { changeRequestsHandlers, reviewsHandlers } from "./features/change-requests/handlers.ts";
import { connectorSignInRoutes } from "./features/connectors/sign-in-page.ts";
import { connectorsHandlers } from "./features/connectors/handlers.ts";
import { conversationHandlers } from "./http/handlers/conversation.ts";
import { environmentsHandlers } from "./features/environments/handlers.ts";
import { messagesHandlers } from "./http/handlers/messages.ts";
import { dashboardRoutes, InstallationName } from "./http/pages/dashboard.ts";
import { PAGE_DIRECTORY } from "./http/pages/page-files.ts";
import { issueCode, openingLink } from "./http/pages/dashboard-sessions.ts";
import { docsRoute } from "./http/pages/docs.ts";
import { guideRoutes } from "./http/pages/guide.ts";
import { firesHandlers } from "./http/handlers/fires.ts";
import { GitEndpoint, gitRoute } from "./http/git/git.ts";
import { deviceLoginHandlers } from "./http/handlers/device-logins.ts";
import { identityHandlers } from "./http/handlers/identity.ts";
import { Addresses, ImportPolicy, Limits, ThisNode } from "./http/limits.ts";
import { attachmentRoutes } from "./http/raw/attachments.ts";
import { deviceLoginRoutes } from "./http/raw/device-logins.ts";
import { executorRoutes } from "./http/raw/executor.ts";
import { OwnTools } from "./http/raw/own-tools.ts";
import { liveRoutes } from "./http/live/live.ts";
import { machinesHandlers } from "./http/handlers/machines.ts";
import { metricsRoute } from "./http/operating/metrics.ts";
import { openingsLayer } from "./http/callers/openings.ts";
import { makePreviews } from "./http/relay/preview.ts";
import { outboundWebhooksHandlers } from "./features/notifications/handlers.ts";
import { modelProvidersHandlers } from "./features/model-providers/handlers.ts";
import { operatorHandlers } from "./http/handlers/operator.ts";
import { peopleHandlers } from "./http/handlers/people.ts";
import { projectsHandlers } from "./http/handlers/projects.ts";
import { makeRelay } from "./http/relay/relay.ts";
import { makeTerminals } from "./http/relay/terminal.ts";
import { sandboxHandlers } from "./http/handlers/sandbox.ts";
import { secretsHandlers } from "./http/handlers/secrets.ts";
import type { Listener, RawRoutes } from "./http/server.ts";
import { sessionsHandlers } from "./http/handlers/sessions.ts";
import { exactPaths } from "./http/routes.ts";
import { RouteNames } from "./http/route-name.ts";
import { Readiness, systemRoutes } from "./http/operating/system.ts";
import { triggerWishesHandlers } from "./features/change-requests/trigger-wishes-handlers.ts";
import { triggersHandlers } from "./http/handlers/triggers.ts";
import { webhookRefusalsHandlers } from "./http/handlers/webhook-refusals.ts";
import { makeReceiver } from "./http/webhooks/webhooks.ts";
import type { Saves } from "./saves/port.ts";
import type { DaemonClient } from "./sandbox/daemon.ts";
import { SandboxProvider } from "./sandbox/port.ts";
import type { Store } from "./database.ts";

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
  /** The smart HTTP protocol over the hosted repositories. */
  readonly git: SmartHttp;
  readonly ports: Layer.Layer<Ports, E>;
  readonly listener: Listener;
  /** Routes from and to the other nodes (nodes/endpoint.ts). */
  readonly nodeRoutes: Effect.Effect<RawRoutes, never, Ports | Activity | Building | Scope.Scope>;
}

/** The service's name inside sandboxes, whatever its address outside (api.md 8). */
const INTERNAL_URL = "http://platform.internal";

/** The gateway as sandboxes see it: our host name, and the configured path. */
const gateway = ({ llm }: Config) => {
  if (llm === null) return null;
  const upstream = new URL(llm.baseUrl);
  const below = upstream.pathname.replace(/\/$/, "");
  return {
    upstream: `${upstream.origin}${below}`,
    baseUrl: `http://${MODEL_HOST}${below}`,
    apiKey: llm.apiKey,
    tiers: llm.tiers,
  };
};

/** How actors are reached, and which of them live here. */
export type AddressBook = Layer.Layer<Actors | Placement, never, Sharding.Sharding>;

const clusterAddresses: AddressBook = Layer.mergeAll(actorsLayer, placementLayer);
/** The simulated provider runs no model. */
const modelPolicy = (config: Config) =>
  Layer.effect(
    ModelPolicy,
    Effect.map(SandboxProvider, ({ name }) => ({
      required: name !== "simulated",
      gatewayTiers: config.llm?.tiers ?? [],
      gatewayKey: config.llm?.apiKey ?? null,
      defaults: config.defaultModels,
    })),
  );

/** The feature's answers to what the core asks. */
const accountModels = Layer.merge(
  Layer.effect(
    AccountModels,
    Effect.map(
      ModelProviders,
      ({ usable }) =>
        (user) =>
          // No key, and no address.
          Effect.map(usable(user), (providers) =>
            providers.map(({ owner, name, kind, models, prices }) => ({ owner, name, kind, models, prices })),
          ),
    ),
  ),
  Layer.effect(
    PassedUsages,
    Effect.map(ModelUsage, ({ days }) => days),
  ),
);

/** They choose the sandboxes' root file systems, and build them. */
const environmentLayers = ({ config, nodeId }: Pick<ServiceOptions<never>, "config" | "nodeId">) =>
  Layer.mergeAll(
    environmentsLayer({ nodeId, refreshMs: config.environmentRefreshMs }),
    buildingLayer({ nodeId, atOnce: config.buildsAtOnce, basesMs: config.environmentBasesMs }),
  );

/** What decides about fires, when they come and when they leave the queue. */
const startLayers = (config: Config) => Layer.merge(firingLayer(config), startLimitsLayer);

/** Ports, then actors over them, then the services that the endpoints use: the service without HTTP. */
export const actorLayers = <E>({
  config,
  nodeId,
  publicUrl,
  ports,
  ready = Effect.void,
  addressBook = clusterAddresses,
}: Pick<ServiceOptions<E>, "config" | "nodeId" | "publicUrl" | "ports"> & {
  readonly ready?: Effect.Effect<void>;
  readonly addressBook?: AddressBook;
}) => {
  const entity = { maxIdleMs: config.actorIdleMs };
  const { bootTimeoutMs } = config;
  const offered = Layer.succeed(Runtimes, config.runtimes);
  const spec = { internalUrl: INTERNAL_URL, ...config, gateway: gateway(config) };
  const entities = Layer.mergeAll(
    sessionActors({ ...entity, nodeId }),
    sandboxActors({ ...entity, ...spec }),
    accountActors({ ...entity, bootTimeoutMs }),
    environmentBuildActors(entity),
  ).pipe(Layer.provideMerge(environmentLayers({ config, nodeId })));
  const duties = Layer.mergeAll(
    recoveryLayer({ intervalMs: DUTIES.recovery.periodMs(config), ready }),
    schedulerLayer({ intervalMs: DUTIES.scheduler.periodMs(config) }),
    reconcileLayer({ intervalMs: DUTIES.manifests.periodMs(config) }),
    retentionLayer({ ...config, features: pruneResults }),
    orphansLayer,
    Layer.merge(peopleLayer, deletionsLayer),
    Layer.merge(unclaimedLayer, savesLayer),
    Layer.merge(
      Layer.merge(
        oldImagesLayer({ nodeId }),
        baseImagesLayer({ nodeId, everyMs: config.environmentBasesMs }),
      ),
      warmPoolDuty({ nodeId, ...spec }),
    ),
    sweeperLayer({ nodeId, ...config }),
    secretsLayer({ nodeId }),
    Layer.merge(connectorsLayer, approvalsLayer),
  );
  return duties.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        triggerActors({ ...entity, ...config }),
        changeRequestActors(entity),
        conversationActors(entity),
      ),
    ),
    Layer.provideMerge(Layer.mergeAll(startLayers(config), manifestsLayer, pullMirrorLayer({ publicUrl }))),
    Layer.provideMerge(
      Layer.mergeAll(activityLayer, admitterLayer, directoryLayer, cursorReadsLayer, timersLayer, entities),
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        addressBook,
        transitionRecordLayer,
        RequestBranches.layer,
        bootPlacesLayer(config.bootsAtOnce),
        warmPoolLayer({ nodeId, ...config }),
        conversationHubLayer,
        Layer.mergeAll(modelPolicy(config), accountModels, accountSpendLayer, ownSubscriptionsLayer),
      ),
    ),
    Layer.provideMerge(Layer.mergeAll(Doubts.layer, RoomWishes.layer, LaterLimits.layer)),
    Layer.provideMerge(Layer.succeed(PageAddress, publicUrl)),
    Layer.provideMerge(pausingLayer),
    Layer.provideMerge(Layer.mergeAll(callApprovalLayer, proposedWorkLayer, offered)),
    Layer.provideMerge(ports),
  );
};

/** The first route that accepts a request handles it. */
const firstOf = (routes: readonly RawRoutes[]): RawRoutes => ({
  request: (request, response, next) => routes.some((route) => route.request(request, response, next)),
  upgrade: (request, socket, head) => routes.some((route) => route.upgrade(request, socket, head)),
});

/** The service's version, from its package. */
export const { version: VERSION } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
) as { readonly version: string };

/** How often each duty runs with these settings, ms. */
const dutyPeriods = (config: Config): ReadonlyMap<DutyName, number> =>
  new Map(
    DUTY_NAMES.map((name) => {
      const { periodMs } = DUTIES[name];
      return [name, typeof periodMs === "function" ? periodMs(config) : periodMs];
    }),
  );

const settings = <E>(
  { config, dataDir, diskFreeBytes, nodeId, publicUrl, git, listener }: ServiceOptions<E>,
  started: () => boolean,
) =>
  Layer.mergeAll(
    Layer.succeed(Limits, config),
    Layer.succeed(Addresses, {
      publicUrl,
      internalUrl: INTERNAL_URL,
      previews: config.previewUrl ?? localPreviews(listener.port),
    }),
    Layer.succeed(InstallationName, config.name),
    Layer.succeed(Proxies, config.trustedProxies),
    Layer.succeed(ImportPolicy, { roots: config.importRoots, allowHosts: config.gitAllowHosts, dataDir }),
    Refusals.layer,
    Layer.succeed(RouteNames, routeTable.name),
    Layer.succeed(GitEndpoint, git),
    Layer.succeed(OwnTools, OWN_TOOLS),
    Layer.succeed(Readiness, { started }),
    Layer.succeed(ThisNode, {
      id: nodeId,
      version: VERSION,
      periods: dutyPeriods(config),
      diskFreeBytes,
    }),
  );

const handlers = Layer.mergeAll(
  deviceLoginHandlers,
  identityHandlers,
  projectsHandlers,
  sessionsHandlers,
  secretsHandlers,
  connectorsHandlers,
  approvalsHandlers,
  auditHandlers,
  activityHandlers,
  triggersHandlers,
  triggerWishesHandlers,
  firesHandlers,
  webhookRefusalsHandlers,
  outboundWebhooksHandlers,
  changeRequestsHandlers,
  reviewsHandlers,
  environmentsHandlers,
  sandboxHandlers,
  conversationHandlers,
  machinesHandlers,
  messagesHandlers,
  operatorHandlers,
  peopleHandlers,
  modelProvidersHandlers,
  spendHandlers,
  subscriptionsHandlers,
);

const routes = Layer.mergeAll(
  HttpApiBuilder.layer(Api, { openapiPath: "/openapi.json" }).pipe(Layer.provide(handlers)),
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
  connectorSignInRoutes,
).pipe(Layer.provide(authorizedLayer));

/**
 * Runs the service in the caller's scope. When it returns, actors are awake and requests are answered.
 *
 * @returns the first account's token if this start created it, to be shown once, and a link that signs a browser in
 * with it; otherwise null.
 */
export const runService = Effect.fnUntraced(function* <E>(options: ServiceOptions<E>) {
  let started = false;
  const ready = yield* Deferred.make<void>();
  const context = yield* Layer.build(
    Layer.mergeAll(
      settings(options, () => started),
      NodeHttpServer.layerHttpServices,
      webhookRecordLayer,
      requestBranchesLayer({ intervalMs: DUTIES.change_requests.periodMs(options.config) }),
      Layer.merge(pullRequestsLayer, spendLayer),
      outboundWebhooksLayer(options),
    ).pipe(
      Layer.provideMerge(openingsLayer),
      Layer.provideMerge(outboundLayer),
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
      yield* options.listener.attach(yield* exactPaths(HttpRouter.toHttpEffect(routes)), firstOf(raw));
      started = true;
      yield* Deferred.succeed(ready, undefined);
      if (token === null) return null;
      const code = yield* issueCode(tokenHash(token));
      return { token, link: openingLink(options.publicUrl, code) };
    }),
    context,
  );
});
