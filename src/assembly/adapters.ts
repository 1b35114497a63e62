/**
 * Chooses the adapter behind each port, by configuration. Only serve.ts and the CLI, which use this file, name concrete
 * adapters.
 */
import path from "node:path";
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { RpcSerialization } from "effect/rpc";
import type * as Scope from "effect/Scope";
import { sandboxPrograms } from "./sandbox-programs.ts";
import { clusterRunner, singleRunner } from "../actors/cluster.ts";
import { agentBinaries } from "../sandbox/bundle/agent-binaries.ts";
import type { Config } from "../settings/config.ts";
import type { KubernetesSettings } from "../domain/sandbox/kubernetes.ts";
import { neededSignInMs } from "../domain/person/sign-in.ts";
import { measureGit } from "../git/measured.ts";
import { Measures } from "../telemetry/port.ts";
import { byKind } from "../git/backends.ts";
import { openExternal, plainRemote } from "../git/upstream/external.ts";
import { githubRepositories } from "../git/github/backend.ts";
import { hostedBackend } from "../git/repository/hosted.ts";
import { makeWire } from "../git/github/wire.ts";
import { KeptRepositories } from "../git/kept.ts";
import { thrownText } from "../ground/thrown.ts";
import { layerStorePlace } from "../builder/buildah/layer-stores.ts";
import { projectFiles } from "../sandbox/packages/store.ts";
import { type ProjectPlace, ProjectPlaces } from "../services/projects/project-places.ts";
import { keptHosted, keptMirrors } from "../git/repository/kept-here.ts";
import { Connections, connections } from "../git/connection.ts";
import { GitBackend, type GitError } from "../git/port.ts";
import { PullRequests } from "../git/pull-requests.ts";
import { type SmartHttp, smartHttp } from "../git/server/smart-http.ts";
import { Upstreams } from "../git/upstream/upstreams.ts";
import { buildahBuilder } from "../builder/buildah/buildah.ts";
import type { BuildahOptions } from "../builder/buildah/installation.ts";
import { imageSite, noSite } from "../builder/site/images.ts";
import type { BuildLimits } from "../builder/port.ts";
import { simulatedSite } from "../builder/site/simulated.ts";
import { type Installation, linkSecret } from "../store/installation.ts";
import { runnerSocketLayer } from "../nodes/runner-socket.ts";
import { nodeSaves } from "../nodes/saves.ts";
import { LocalSaves, localSaves, SavesDoor } from "../saves/layer.ts";
import { upstreamsLayer } from "../services/projects/upstreams.ts";
import { namesOfService, serviceAddresses } from "../sandbox/egress-policy.ts";
import { daemonHttp } from "../sandbox/daemon-http.ts";
import { RegistryImages } from "../sandbox/images/registry/images.ts";
import { ImageStore } from "../sandbox/images/store.ts";
import { RuntimeStore } from "../sandbox/runtimes/store.ts";
import { simulatedDaemon } from "../sandbox/daemon-simulated.ts";
import { dockerKind } from "../sandbox/docker/docker.ts";
import { gvisorKind } from "../sandbox/gvisor/gvisor.ts";
import { launchText } from "../sandbox/kubernetes/launch.ts";
import type { LaunchOptions } from "../sandbox/launch-settings.ts";
import { type KubernetesOptions, kubernetesProvider } from "../sandbox/kubernetes/provider.ts";
import { localKinds } from "../sandbox/local/local.ts";
import { DEFAULT_LIMITS, type MachineOptions, type SandboxLimits } from "../sandbox/machine/options.ts";
import type { Kind } from "../sandbox/machine/isolation/isolation.ts";
import { machineProvider } from "../sandbox/machine/provider.ts";
import {
  leaveRunDirectory,
  removeTree,
  runDirectoryPath,
  treesInUse,
} from "../sandbox/machine/disk/run-directory.ts";
import type { ModelDoor } from "../sandbox/model-door.ts";
import { simulatedProvider } from "../sandbox/simulated.ts";
import { examineMailServer, makeMailer } from "../features/notifications/mailer.ts";
import { makeSender } from "../features/notifications/sender.ts";
import { modelCalls } from "../features/model-providers/calls.ts";
import { GatewayServer, ModelServers } from "../features/model-providers/ports/model-servers.ts";
import { accountSpendLayer } from "../features/spend/account-spend.ts";
import { makeModelServers } from "../features/model-providers/sender.ts";
import { ConnectorDescriptions, ConnectorServers } from "../connectors/port.ts";
import { makeDescriptions } from "../connectors/descriptions.ts";
import { makeServers } from "../connectors/servers.ts";
import { ConnectorSignIns } from "../connectors/sign-in/port.ts";
import { makeSignIns } from "../connectors/sign-in.ts";
import { SignInProviders } from "../sign-in/port.ts";
import { makeProviders } from "../sign-in/providers.ts";
import { Providers } from "../services/projects/model-keys.ts";
import { Mailer } from "../features/notifications/ports/mailer.ts";
import { OutboundSender } from "../features/notifications/ports/outbound-sender.ts";
import { TokenSignIn } from "../store/ports/people/identity.ts";
import * as Client from "../store/postgres/connection/client.ts";
import * as Embedded from "../store/postgres/embedded/embedded.ts";
import { migrateIfFit } from "../store/postgres/examine.ts";
import { postgresStore } from "./database.ts";

/** Where a data directory has mirrors: of plain git servers, and of code hosts. */
const mirrorsIn = (dataDir: string) => ({
  mirrors: path.join(dataDir, "mirrors"),
  codeHostMirrors: path.join(dataDir, "code-host-mirrors"),
});

/** The environment of one service. */
export interface Place {
  readonly config: Config;
  /** The real path of a data directory that this process owns. */
  readonly dataDir: string;
  readonly installation: Pick<Installation, "installationId" | "nodeId">;
  /** The port of this service's listener, which sandboxes reach as platform.internal. */
  readonly port: number;
  /** Answers calls of sandboxes to the account's own providers of models. Absent: nothing does. */
  readonly modelDoor?: ModelDoor;
}

type Data = Pick<Place, "config" | "dataDir" | "installation">;

/** Whether and how long the store's tokens need a sign-in. */
export const tokenSignIn = ({ signIn }: Pick<Config, "signIn">) =>
  Layer.succeed(TokenSignIn, neededSignInMs(signIn));

/** The migrated store: in DATABASE_URL's Postgres, otherwise in the embedded one. */
export const store = ({ config, dataDir, installation }: Data) => {
  const database =
    config.databaseUrl === null ? Embedded.layer(dataDir) : Client.layer({ url: config.databaseUrl });
  return postgresStore.pipe(
    Layer.provide(tokenSignIn(config)),
    Layer.provideMerge(Layer.effectDiscard(migrateIfFit(installation.nodeId))),
    Layer.provideMerge(database),
  );
};

/** The directory of the repositories that are hosted here. */
export const hostedIn = (dataDir: string): string => path.join(dataDir, "repositories");

/** The hosted repositories in the data directory. */
export const gitHost = ({ config, dataDir }: Pick<Place, "config" | "dataDir">) =>
  hostedBackend({ directory: hostedIn(dataDir), allowHosts: config.gitAllowHosts });

/** Includes the ports that are context references: pull requests, and this node's own copies of repositories. */
export interface NodeRepositories {
  readonly endpoint: SmartHttp;
  /** These include repositories at other servers and their pull requests, and the access to this node's own copies. */
  readonly ports: Context.Context<GitBackend>;
}

/**
 * Every project's repository, by its kind: hosted ones on any node, and mirrors of external ones, which are kept here.
 */
export const repositories = Effect.fnUntraced(function* (
  { config, dataDir }: Pick<Place, "config" | "dataDir">,
  hostedAnywhere: GitBackend["Service"],
): Effect.fn.Return<NodeRepositories, GitError, Upstreams | Scope.Scope> {
  const upstreams = yield* Upstreams;
  const allowHosts = config.gitAllowHosts;
  const { mirrors, codeHostMirrors } = mirrorsIn(dataDir);
  const git = yield* openExternal({ directory: mirrors, allowHosts, upstreams, findRemote: plainRemote });
  const github = yield* githubRepositories({
    upstreams,
    allowHosts,
    mirrored: (findRemote) => openExternal({ directory: codeHostMirrors, allowHosts, upstreams, findRemote }),
  });
  const { backend, endpoint } = byKind(upstreams, {
    hosted: { backend: hostedAnywhere, endpoint: smartHttp({ directory: hostedIn(dataDir) }) },
    git,
    github,
  });
  const keptHere = [
    keptHosted(hostedIn(dataDir)),
    keptMirrors(mirrors, git.backend),
    keptMirrors(codeHostMirrors, github.backend),
  ];
  const ports = Context.make(GitBackend, measureGit(backend, yield* Measures)).pipe(
    Context.add(PullRequests, github.pulls),
    Context.add(
      Connections,
      connections(upstreams, (upstream, branch) =>
        (upstream.source.kind === "github" ? github : git).checkConnection(upstream, branch),
      ),
    ),
    Context.add(KeptRepositories, keptHere),
  );
  return { endpoint, ports };
});

/** A directory of each project. */
const projectDirectory = (what: string, directoryFor: (projectId: string) => string): ProjectPlace => ({
  what,
  remove: (projectId) =>
    Effect.tryPromise({
      try: () => removeTree(directoryFor(projectId)),
      catch: (error) => ({ message: thrownText(error) }),
    }),
});

/** Adds where this node's disk has something of a project. Sandboxes and images are removed by their own duties. */
export const withPlaces = <Parts>(
  { dataDir }: Pick<Place, "dataDir">,
  parts: Context.Context<Parts | LocalSaves>,
): Context.Context<Parts | LocalSaves> => {
  const repositoryPlaces = Context.get(parts, KeptRepositories).map(({ remove }): ProjectPlace => ({
    what: "the repository",
    remove: (projectId) => remove({ projectId }),
  }));
  return Context.add(parts, ProjectPlaces, [
    ...repositoryPlaces,
    { what: "saved work", remove: Context.get(parts, LocalSaves).removeProject },
    projectDirectory("layers of builds", (id) => layerStorePlace(path.join(dataDir, "environments"), id)),
    projectDirectory("packages", (id) => projectFiles(path.join(dataDir, "packages"), id)),
  ]);
};

/** Saved work as the service has it: this node's, and what the other nodes have. */
export const savedWork = ({ config, dataDir, installation }: Place) =>
  nodeSaves.pipe(
    Layer.provide(upstreamsLayer),
    Layer.provideMerge(
      localSaves({
        dataDir,
        nodeId: installation.nodeId,
        repositories: [hostedIn(dataDir), ...Object.values(mirrorsIn(dataDir))],
        projectBytes: config.savesProjectBytes,
        sessionBytes: config.savesSessionBytes,
      }),
    ),
  );

/** Git's endpoint of the repositories, with what it says of saved work. */
export const withDoor = (saved: Context.Context<SavesDoor>, endpoint: SmartHttp): SmartHttp =>
  Context.get(saved, SavesDoor).before(endpoint);

/** The way to the providers of models. Only their public addresses are dialled. */
const providers = Layer.effect(Providers, makeWire([]));

/** The ways to receivers of outbound webhooks, and to people's mailboxes. */
export const outboundSender = ({ webhookAllowHosts, mail }: Config) =>
  Layer.merge(
    Layer.effect(OutboundSender, makeSender({ allowHosts: webhookAllowHosts })),
    Layer.succeed(Mailer, mail === null ? null : makeMailer(mail)),
  );
/** Why the operator's mail server takes no mail. Null if it does, undefined if the operator has named none. */
export const examineMail = ({ mail }: Config) => (mail === null ? Effect.undefined : examineMailServer(mail));
/** The way to the account's providers of models. */
export const modelServers = ({ connectorAllowHosts }: Config) =>
  Layer.effect(ModelServers, makeModelServers(connectorAllowHosts));
/** The way to the managed gateway, whatever its address is. */
const gatewayServer = ({ llm }: Config) =>
  Layer.effect(GatewayServer, makeModelServers(llm === null ? [] : [new URL(llm.baseUrl).hostname]));
/** The way to the servers of connectors, and to their sign-in. */
export const connectorServers = ({ connectorAllowHosts, name }: Config) =>
  Layer.merge(
    Layer.merge(
      Layer.effect(ConnectorServers, makeServers(connectorAllowHosts)),
      Layer.effect(ConnectorDescriptions, makeDescriptions()),
    ),
    Layer.effect(ConnectorSignIns, makeSignIns(connectorAllowHosts, { clientName: name })),
  );

/** The sign-in providers. A secret's file that cannot be read stops the start. */
const signInProviders = ({ signIn }: Config) =>
  Layer.effect(SignInProviders, Effect.try({ try: () => makeProviders(signIn), catch: (error) => error }));

/** The ways to other servers, and what answers the calls of models that sandboxes make. */
export const waysOut = ({ config, modelDoor }: Place) => {
  const servers = modelServers(config);
  return Layer.mergeAll(
    providers,
    outboundSender(config),
    connectorServers(config),
    signInProviders(config),
    servers,
    modelDoor === undefined
      ? Layer.empty
      : Layer.provide(
          modelCalls(modelDoor),
          Layer.mergeAll(servers, gatewayServer(config), accountSpendLayer),
        ),
  );
};

/**
 * Where images of sandboxes are. The data directory is closed to other users, so the sandboxes of a root service, which
 * have users of their own, could not use images in it.
 */
export const imagesDirectory = ({ config, dataDir, installation }: Data): string => {
  if (config.imagesDir !== null) return config.imagesDir;
  if (process.geteuid?.() !== 0) return path.join(dataDir, "images");
  return path.join("/var/lib/platform", installation.installationId.slice(-12), "images");
};

/** Where agent runtimes are that an operator has added. Sandboxes read them, too. */
export const runtimesDirectory = (place: Pick<Place, "config" | "dataDir" | "installation">): string =>
  path.join(imagesDirectory(place), "runtimes");

/** All layers of one project's builds, and of all projects, that are kept, in bytes. */
const LAYERS_KEPT = { storeBytes: 20 * 1024 ** 3, storesBytes: 60 * 1024 ** 3 } as const;

type BuilderPlace = Pick<Place, "config" | "dataDir" | "installation">;

/** Service and operator build side by side, so each has its own directories and user ids. */
const builderOptions = (
  { config, dataDir, installation }: BuilderPlace,
  { directory, suffix }: { readonly directory: string; readonly suffix: string },
): BuildahOptions => ({
  ...LAYERS_KEPT,
  directory: path.join(dataDir, directory),
  // A sibling of the sandboxes' own: its path is short, and their users can enter it.
  runDir: `${runDirectoryPath(installation.installationId)}-${suffix}`,
  installationId: `${installation.installationId}-${suffix}`,
  nodePath: process.execPath,
  path: config.path,
  serviceHosts: namesOfService(config),
});

/** The options of the builder of `platform images build`. */
export const operatorBuilder = (place: BuilderPlace): BuildahOptions =>
  builderOptions(place, { directory: "builder", suffix: "o" });

const MIB = 1024 ** 2;

/** What one build of a project may use. Processes, output and files are generous; the settings bound the rest. */
const buildLimits = ({ buildTimeoutMs, buildMemoryMb, buildDiskMb }: Config): BuildLimits => ({
  seconds: Math.ceil(buildTimeoutMs / 1000),
  memoryBytes: buildMemoryMb * MIB,
  diskBytes: buildDiskMb * MIB,
  processes: 2048,
  logBytes: 64 * MIB,
  imageBytes: buildDiskMb * MIB,
  imageFiles: 2_000_000,
});

/** The registry to which images of this machine are pushed (PLATFORM_IMAGE_REGISTRY). Null if none is named. */
export const registryImages = (place: Place): RegistryImages | null => {
  const { imageRegistry } = place.config;
  if (imageRegistry === null) return null;
  const { authFile, ...location } = imageRegistry;
  return new RegistryImages({
    store: new ImageStore(imagesDirectory(place)),
    location,
    authFile,
    scratch: path.join(place.dataDir, "pushes"),
  });
};

/** The builder of projects' environments on this node (PLATFORM_BUILDER). */
export const buildSite = (place: Place) => {
  const { config, dataDir } = place;
  // A simulated sandbox has no files.
  if (config.sandboxProvider === "simulated") return simulatedSite;
  switch (config.builder) {
    case "none":
      return noSite;
    case "buildah":
      return imageSite({
        store: new ImageStore(imagesDirectory(place)),
        directory: path.join(dataDir, "environments"),
        limits: buildLimits(config),
        egressAllow: config.egressAllow,
        imagesBytes: config.imagesMaxMb * MIB,
        inUse: () => treesInUse(runDirectoryPath(place.installation.installationId)),
        registry: registryImages(place),
      }).pipe(
        Layer.provide(buildahBuilder(builderOptions(place, { directory: "environments", suffix: "b" }))),
      );
  }
};

/** What one sandbox may use. The settings bound what grows with a project. */
const sandboxLimits = (config: Config): SandboxLimits => ({
  ...DEFAULT_LIMITS,
  memoryBytes: config.sandboxMemoryMb * MIB,
  cpus: config.sandboxCpus,
  processes: config.sandboxProcesses,
  diskBytes: config.sandboxDiskMb * MIB,
});

/** The options of every provider for the agent runtime of its sandboxes. */
const launchOptions = (config: Config): LaunchOptions => ({
  turnLimits: config.turnLimits,
  models: config.defaultModels,
  orphanMs: config.sandboxOrphanMs,
  setupTimeoutMs: config.setupTimeoutMs,
});

/** The options of a provider on this machine. Bundles the programs that run in sandboxes, and warms the daemon up. */
export const machineOptions = Effect.fnUntraced(function* (place: Place): Effect.fn.Return<MachineOptions> {
  const { config, dataDir, installation, port } = place;
  const programs = yield* sandboxPrograms(dataDir);
  return {
    ...programs,
    imagesDir: imagesDirectory(place),
    runtimesDir: runtimesDirectory(place),
    runDir: runDirectoryPath(installation.installationId),
    installationId: installation.installationId,
    nodeId: installation.nodeId,
    nodePath: process.execPath,
    ...launchOptions(config),
    agentBinaries: agentBinaries(config.runtimes, config.path),
    limits: sandboxLimits(config),
    ...serviceAddresses(config, port),
    ...(config.packages.cacheMb > 0 && { packageSources: config.packages }),
    path: config.path,
    ...(place.modelDoor !== undefined && { modelDoor: place.modelDoor }),
  };
});

/** "Boots in milliseconds" (api.md 9). */
const SIMULATED_BOOT_MS = 5;

/** The kinds of isolation on this machine that the configuration allows, strongest first. With `simulated`, those that it could allow. */
export const machineKinds = ({ sandboxProvider, localForm, runsc, docker }: Config): readonly Kind[] => {
  switch (sandboxProvider) {
    case "auto":
    case "simulated":
      return [gvisorKind(runsc), ...localKinds(localForm)];
    case "gvisor":
      return [gvisorKind(runsc)];
    case "docker":
      return [dockerKind(docker)];
    case "kubernetes":
      return [];
    case "local":
      return localKinds(localForm);
  }
};

const packageCache = ({ config, dataDir }: Pick<Place, "config" | "dataDir">) => ({
  directory: path.join(dataDir, "packages"),
  bytes: config.packages.cacheMb * MIB,
  allowHosts: config.packages.allowHosts,
});

/** The provider. When the service ends and no sandbox keeps running, its copies of programs are removed. */
const onThisMachine = (options: MachineOptions, { config, dataDir }: Pick<Place, "config" | "dataDir">) =>
  machineProvider(options, machineKinds(config), packageCache({ config, dataDir })).pipe(
    Layer.provide(
      Layer.effectDiscard(
        Effect.addFinalizer(() => Effect.ignore(Effect.tryPromise(() => leaveRunDirectory(options.runDir)))),
      ),
    ),
  );

/** The options of a provider in a cluster. */
export const kubernetesOptions = (place: Place, settings: KubernetesSettings): KubernetesOptions => {
  const { config, dataDir, installation, port } = place;
  const { kubeconfig, namespace, egress, ...pods } = settings;
  const images = registryImages(place);
  return {
    ...pods,
    ...(images !== null && { images }),
    runtimes: new RuntimeStore(runtimesDirectory(place)),
    cluster: { kubeconfig, namespace },
    listen: { host: egress.host, port: egress.port },
    egress: { host: egress.address, port: egress.port },
    secret: linkSecret(dataDir),
    ...serviceAddresses(config, port),
    installationId: installation.installationId,
    nodeId: installation.nodeId,
    limits: sandboxLimits(config),
    ...(config.packages.cacheMb > 0 && { packageSources: config.packages }),
    launchText: launchText(launchOptions(config)),
    ...(place.modelDoor !== undefined && { modelDoor: place.modelDoor }),
  };
};

/** Removes what no name and no former sandbox on this machine uses. A node that builds does it later, too. */
const sweepImages = (place: Place) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis;
    yield* Effect.tryPromise(async () => {
      await registryImages(place)?.sweep();
      const usedTrees = await treesInUse(runDirectoryPath(place.installation.installationId));
      await new ImageStore(imagesDirectory(place)).prune(usedTrees, now);
      // Those of Pods are copies.
      await new RuntimeStore(runtimesDirectory(place)).prune(usedTrees, now);
    });
  }).pipe(Effect.catch(({ cause }) => Effect.logWarning("unused images stay", cause)));

const inCluster = (place: Place) => {
  const { kubernetes } = place.config;
  // Only a configuration that was not read by config.ts lacks them.
  if (kubernetes === null) throw new Error("kubernetes has no settings");
  return kubernetesProvider(kubernetesOptions(place, kubernetes), packageCache(place)).pipe(
    Layer.merge(Layer.effectDiscard(sweepImages(place))),
  );
};

/** The sandbox provider with its client for daemons (PLATFORM_SANDBOX_PROVIDER). */
export const sandboxes = (place: Place) => {
  const { config } = place;
  // Every provider has its case: a new name is a type error here.
  switch (config.sandboxProvider) {
    case "simulated":
      return Layer.mergeAll(simulatedProvider({ bootMs: SIMULATED_BOOT_MS }), simulatedDaemon);
    case "kubernetes":
      return Layer.mergeAll(inCluster(place), daemonHttp);
    case "auto":
    case "gvisor":
    case "local":
    case "docker":
      return Layer.mergeAll(
        Layer.unwrap(Effect.map(machineOptions(place), (options) => onThisMachine(options, place))),
        daemonHttp,
      );
  }
};

/** Where actors live: in this process alone, or on all nodes that share DATABASE_URL's Postgres. */
export const runner = ({ databaseUrl, nodeHost, nodePort }: Config) =>
  databaseUrl === null
    ? singleRunner
    : clusterRunner(nodeHost).pipe(
        Layer.provide(NodeClusterSocket.layerClientProtocol),
        Layer.provide(runnerSocketLayer({ nodeHost, nodePort })),
        Layer.provide(RpcSerialization.layerNdjson),
      );
