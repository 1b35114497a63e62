/**
 * The composition root: the only file that names concrete adapters. `npm start` serves until SIGTERM or SIGINT, then
 * drains; what runs in sandboxes goes on and is found again at the next start (api.md 9).
 */
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { NodeRuntime } from "@effect/platform-node";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { bundleDaemon } from "../daemon/bundle.ts";
import { singleRunner } from "./actors/cluster.ts";
import { keyringLayer } from "./actors/keyring.ts";
import { agentBinaries } from "./agent-binaries.ts";
import { readConfig, type Config } from "./config.ts";
import { hostedBackend } from "./git/hosted.ts";
import { smartHttp } from "./git/smart-http.ts";
import { openListener } from "./http/server.ts";
import { openInstallation, type Installation } from "./installation.ts";
import { daemonHttp } from "./sandbox/daemon-http.ts";
import { DEFAULT_LIMITS } from "./sandbox/installation.ts";
import { localProvider } from "./sandbox/local.ts";
import { SandboxProvider } from "./sandbox/port.ts";
import { runService } from "./service.ts";
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
}

const store = ({ config, dataDir }: Place) => {
  const database =
    config.databaseUrl === null ? Embedded.layer(dataDir) : Client.layer({ url: config.databaseUrl });
  return postgresStore.pipe(Layer.provideMerge(Layer.effectDiscard(migrate)), Layer.provideMerge(database));
};

const local = ({ config, dataDir, installation, port }: Place) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const bundle = path.join(dataDir, "platform-agent.cjs");
      yield* Effect.promise(() => bundleDaemon(bundle));
      return localProvider({
        // Sockets need a short path, and sandboxes one that other users can pass: not the data directory.
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

const serve = Effect.gen(function* () {
  const config = readConfig(process.env, process.cwd());
  const dataDir = yield* claimDataDirectory(config.dataDir);
  const directory = path.join(dataDir, "repositories");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const installation = openInstallation(dataDir, config.masterKey, yield* Clock.currentTimeMillis);
  const listener = yield* openListener(config);
  const place: Place = { config, dataDir, installation, port: listener.port };
  const provider = yield* Layer.build(local(place));
  const ports = Layer.mergeAll(
    store(place),
    hostedBackend({ directory, allowHosts: config.gitAllowHosts }),
    Layer.succeedContext(provider),
    daemonHttp,
    keyringLayer(installation.secrets),
    singleRunner,
  );
  const publicUrl = config.publicUrl ?? `http://${config.host}:${listener.port}`;
  const token = yield* runService({
    config,
    dataDir,
    nodeId: installation.nodeId,
    masterKey: installation.secrets.current,
    publicUrl,
    git: smartHttp({ directory }),
    ports,
    listener,
  });
  const { summary } = yield* Effect.provideContext(SandboxProvider, provider);
  yield* Effect.logInfo(`sandboxes: ${summary}`);
  if (token !== null) yield* Effect.logInfo(`first start; the account's token, shown this once: ${token}`);
  // The one line on standard output: whoever started the service waits for it.
  process.stdout.write(`ready ${publicUrl}\n`);
  return yield* Effect.never;
});

NodeRuntime.runMain(Effect.scoped(serve).pipe(Effect.provide(logLayer(process.stderr.isTTY))));
