/**
 * The real service in the test's own process: all its endpoints, actors and tables, over Postgres and hosted
 * repositories, with simulated sandboxes and a scripted daemon. Time is real: a test waits for an event or retries
 * (`eventually`), never for a duration.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable } from "node:stream";
import * as Context from "effect/Context";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import { HttpServerRequest } from "effect/http";
import * as Logger from "effect/Logger";
import * as Option from "effect/Option";
import * as Scope from "effect/Scope";
import * as Tracer from "effect/Tracer";
import type * as SqlClient from "effect/sql/SqlClient";
import * as Statement from "effect/sql/Statement";
import { Pool } from "undici";
import { singleRunner } from "../../../src/actors/cluster.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { ProgressTime } from "../../../src/features/approvals/waiting-calls.ts";
import { upstreamsLayer } from "../../../src/services/projects/upstreams.ts";
import {
  connectorServers,
  gitHost,
  modelServers,
  outboundSender,
  repositories,
  tokenSignIn,
  withPlaces,
} from "../../../src/assembly/adapters.ts";
import { readConfig, type Config, type Environment } from "../../../src/settings/config.ts";
import { makeToken, TOKEN_BYTES } from "../../../src/domain/ids.ts";
import { GitBackend } from "../../../src/git/port.ts";
import { BodyTime } from "../../../src/http/reading/body.ts";
import { routeTable } from "../../../src/assembly/api.ts";
import { openListener } from "../../../src/http/server.ts";
import { makeNodeRoutes } from "../../../src/nodes/endpoint.ts";
import { nodeLayers } from "../../../src/nodes/layer.ts";
import { SandboxProvider, type DaemonLink } from "../../../src/sandbox/port.ts";
import { SimulatedSite } from "../../../src/builder/site/simulated.ts";
import { BuildSite } from "../../../src/builder/site/port.ts";
import { simulatedProvider, type SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { SignInProviders, type SignInProvider } from "../../../src/sign-in/port.ts";
import { makeProviders } from "../../../src/sign-in/providers.ts";
import { runService, type Ports } from "../../../src/service.ts";
import { type FaultPoint, Faults } from "../../../src/store/ports/faults.ts";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { Pauses } from "../../../src/store/ports/pauses.ts";
import { postgresStore } from "../../../src/assembly/database.ts";
import { Measures, NO_MEASURES, type MeasuresApi } from "../../../src/telemetry/port.ts";
import { freshDatabase } from "../postgres/postgres.ts";
import { countStart } from "../vitest/starts.ts";
import { LocalSaves } from "../../../src/saves/layer.ts";
import { notSaved } from "../../../src/domain/save/saved.ts";
import { Saves, type SaveRequest } from "../../../src/saves/port.ts";
import { SimulatedSaves } from "../../twins/saves.ts";
import { scriptedDaemon, type DaemonScript } from "./sessions/scripted-daemon.ts";

const unreached = (_request: SaveRequest, error: string) => Effect.succeed(notSaved(error));

/** Ports that a test may use directly, in addition to the API. */
export type Inside = Ports | SimulatedSandboxes | SqlClient.SqlClient;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  /** The body as JSON. Null if it is not JSON. */
  readonly json: unknown;
}

export interface RequestOptions {
  /** An object is sent as JSON. Text and bytes are sent unchanged, without a content type. */
  readonly body?: unknown;
  /** An unchanged body. A stream has no length. */
  readonly stream?: string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  /** The bearer token. Null sends none. The default is the account's first token. */
  readonly token?: string | null;
}

export type Ask = (method: string, target: string, options?: RequestOptions) => Promise<Answer>;

export interface TestService {
  readonly url: string;
  readonly port: number;
  /** The address of the service's own database. */
  readonly databaseUrl: string;
  /** The bootstrap account's account-wide user token. */
  readonly token: string;
  /** The same one, also in a service that is shared: its account alone is the operator. */
  readonly operatorToken: string;
  readonly daemon: DaemonScript;
  /** They answer as the daemon's script says, unless a test has them do otherwise. */
  readonly saves: SimulatedSaves;
  /** The log so far, one line for each entry. */
  readonly logs: readonly string[];
  /** The allowed root of imports, and the directory of the service's own files. */
  readonly importRoot: string;
  readonly dataDir: string;
  /** Sends `target` exactly as written. */
  readonly request: Ask;
  /** Uses a port. */
  readonly inside: <A, E>(use: Effect.Effect<A, E, Inside>) => Promise<A>;
  readonly close: () => Promise<void>;
}

export interface TestOptions {
  /** How long a body may take. The service's own 30 s are too long for a test. */
  readonly bodyTime?: Duration.Input;
  /** How often a caller hears that its call still waits for a person, in ms. */
  readonly progressMs?: number;
  /** Where the daemon of a sandbox is reached. Default: nowhere. */
  readonly link?: (sandboxId: string) => DaemonLink;
  /** What builds environments. The default builds at once. */
  readonly site?: (typeof BuildSite)["Service"];
  /** Sessions need a model, as with a real provider. */
  readonly needsModel?: boolean;
  /** Is shown each SQL statement of a request, before it is sent. Background work is not shown. */
  readonly requestStatements?: (text: string, values: readonly unknown[]) => void;
  /** Called with the text of each statement that the database gets. */
  readonly statement?: (text: string) => void;
  /** Where people sign in. Default: as the settings say. */
  readonly signIn?: readonly SignInProvider[];
  /** Called at each fault point (src/store/ports/faults.ts). */
  readonly faults?: (point: FaultPoint) => void;
  /** Gets the service's metrics. Default: none are kept. */
  readonly measures?: MeasuresApi;
  /** It begins as a restored copy does. */
  readonly isPaused?: boolean;
  /** Where the service's spans go. Default: nowhere. */
  readonly traces?: Layer.Layer<never>;
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

const isPlain = (body: unknown): body is string | Uint8Array | null | undefined =>
  body === undefined || body === null || typeof body === "string" || body instanceof Uint8Array;

const asker = (pool: Pool, ownToken: string): Ask => {
  const send: Ask = async (method, target, { body, stream, headers = {}, token = ownToken } = {}) => {
    const response = await pool.request({
      method: method as "GET",
      path: target,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(isPlain(body) ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: stream ?? (isPlain(body) ? (body ?? null) : JSON.stringify(body)),
    });
    const isLive = response.headers["content-type"] === "text/event-stream";
    // A live stream has no end to wait for (event-stream.ts reads them).
    if (isLive) response.body.on("error", () => undefined).destroy();
    const text = isLive ? "" : await response.body.text();
    return {
      status: response.statusCode,
      headers: response.headers as Answer["headers"],
      text,
      json: jsonOf(text),
    };
  };
  return send;
};

const logsInto = (lines: string[]) =>
  Logger.layer([Logger.make((options) => void lines.push(Logger.formatJson.log(options)))]);

const shownTo =
  (show: NonNullable<TestOptions["requestStatements"]>): Statement.Transformer =>
  (statement, _sql, fiber) =>
    Effect.sync(() => {
      if (Option.isSome(Context.getOption(fiber.context, HttpServerRequest.HttpServerRequest)))
        show(...statement.compile());
      return statement;
    });

/** Calls back at each statement: the SQL client makes a span for each. */
const tracerTo = (statement: (text: string) => void) =>
  Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options);
      const attribute = span.attribute.bind(span);
      return Object.assign(span, {
        attribute: (key: string, value: unknown) => {
          if (key === "db.query.text") statement(String(value));
          attribute(key, value);
        },
      });
    },
  });

/** The id of its node. */
export const NODE = "test-node";

interface Place {
  readonly root: string;
  readonly dataDir: string;
  readonly importRoot: string;
}

const makePlace = (): Place => {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), "platform-service-")));
  const place = { root, dataDir: path.join(root, "data"), importRoot: path.join(root, "import") };
  for (const directory of [place.dataDir, place.importRoot]) mkdirSync(directory);
  return place;
};

/** The simulated provider is recognised by its name: under another name it counts as real. */
const renamed = (provider: ReturnType<typeof simulatedProvider>, isRenamed: boolean) =>
  isRenamed
    ? Layer.effectContext(
        Effect.map(Layer.build(provider), (context) =>
          Context.add(context, SandboxProvider, {
            ...Context.get(context, SandboxProvider),
            name: "stand-in",
          }),
        ),
      )
    : provider;

/** The service's dependencies, built in the caller's scope. */
const stage = Effect.fnUntraced(function* (
  config: Config,
  daemon: Layer.Layer<never> | DaemonScript["layer"],
  { link, needsModel = false, signIn, site = new SimulatedSite().service, isPaused = false }: TestOptions,
) {
  const databaseUrl = yield* freshDatabase("migrated");
  const master = { version: 1, bytes: new Uint8Array(randomBytes(32)) };
  const context = yield* Layer.build(
    Layer.mergeAll(
      postgresStore.pipe(
        Layer.provide(tokenSignIn(config)),
        Layer.provideMerge(Client.layer({ url: databaseUrl })),
      ),
      Layer.succeed(BuildSite, site),
      renamed(simulatedProvider({ bootMs: 1, ...(link === undefined ? {} : { link }) }), needsModel),
      daemon,
      gitHost({ config, dataDir: config.dataDir }),
      connectorServers(config),
      keyringLayer({ current: master, former: [] }),
      singleRunner,
      outboundSender(config),
      modelServers(config),
      Layer.succeed(SignInProviders, signIn ?? makeProviders(config.signIn)),
    ),
  );
  if (isPaused)
    yield* Effect.provideContext(
      Effect.flatMap(Pauses, ({ begin }) => begin(1)),
      context,
    );
  return { databaseUrl, context };
});

/**
 * Starts a service with its own database, data directory and port.
 *
 * @param environment settings as an operator would give them, e.g. PLATFORM_TIER_CAPS.
 */
export async function startTestService(
  environment: Environment = {},
  {
    bodyTime = "30 seconds",
    progressMs = 10_000,
    faults = () => undefined,
    measures = NO_MEASURES,
    traces = Layer.empty,
    requestStatements = () => undefined,
    statement,
    ...options
  }: TestOptions = {},
): Promise<TestService> {
  countStart("services");
  const scope = Effect.runSync(Scope.make());
  const place = makePlace();
  const token = makeToken("pat", new Uint8Array(randomBytes(TOKEN_BYTES)));
  const daemon = scriptedDaemon();
  const saves = new SimulatedSaves();
  saves.scripted = () => daemon.save;
  const logs: string[] = [];
  const config = readConfig(
    {
      PLATFORM_PORT: "0",
      PLATFORM_DATA_DIR: place.dataDir,
      PLATFORM_BOOTSTRAP_TOKEN: token,
      PLATFORM_IMPORT_ROOTS: place.importRoot,
      // A test that counts sandboxes counts those of its sessions.
      PLATFORM_WARM_MEMORY_MB: "0",
      ...environment,
    },
    place.root,
  );
  const start = Effect.gen(function* () {
    const staged = yield* stage(config, daemon.layer, options);
    const { databaseUrl } = staged;
    const saved = yield* Effect.provideContext(Layer.build(saves.layer), staged.context);
    const own = Context.merge(staged.context, saved);
    const listener = yield* openListener(config, routeTable);
    const url = config.publicUrl ?? `http://127.0.0.1:${listener.port}`;
    const nodes = yield* Layer.build(
      nodeLayers({ nodeId: NODE, url, graceMs: config.nodeGraceMs }).pipe(
        Layer.provide(Layer.succeedContext(own)),
      ),
    );
    const kept = yield* Effect.provide(
      repositories({ config, dataDir: config.dataDir }, Context.get(nodes, GitBackend)),
      Layer.provide(upstreamsLayer, Layer.succeedContext(own)),
    );
    const parts = Context.add(nodes, LocalSaves, { ...Context.get(saved, Saves), unreached });
    const context = withPlaces(
      config,
      Context.merge(Context.merge(own, parts), kept.ports),
    ) as Context.Context<Inside>;
    yield* runService({
      config,
      dataDir: place.dataDir,
      nodeId: NODE,
      publicUrl: url,
      git: kept.endpoint,
      ports: Layer.succeedContext(context),
      listener,
      diskFreeBytes: Effect.succeed(null),
      nodeRoutes: Effect.provideContext(makeNodeRoutes(Effect.never), parts),
    });
    return { databaseUrl, context, port: listener.port };
  });
  const { databaseUrl, context, port } = await Effect.runPromise(
    Effect.flatMap(Layer.build(traces), (built) => Effect.provideContext(start, built)).pipe(
      Scope.provide(scope),
      Effect.provide(logsInto(logs)),
      Effect.provideService(BodyTime, bodyTime),
      Effect.provideService(ProgressTime, progressMs),
      Effect.provideService(Faults, faults),
      Effect.provideService(Measures, measures),
      Effect.provideService(Statement.CurrentTransformer, shownTo(requestStatements)),
      (started) => (statement === undefined ? started : Effect.withTracer(started, tracerTo(statement))),
    ),
  );
  const origin = `http://127.0.0.1:${port}`;
  const pool = new Pool(origin, { connections: 64, pipelining: 1 });
  return {
    url: origin,
    port,
    databaseUrl,
    token,
    operatorToken: token,
    daemon,
    saves,
    logs,
    importRoot: place.importRoot,
    dataDir: place.dataDir,
    request: asker(pool, token),
    inside: (use) => Effect.runPromise(Effect.provideContext(use, context)),
    close: async () => {
      await pool.destroy();
      await Effect.runPromise(Scope.close(scope, Exit.void));
      rmSync(place.root, { recursive: true, force: true });
    },
  };
}
