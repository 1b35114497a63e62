/**
 * The whole service without its sockets, over its twins: real actors, machines, duties, the endpoints' own effects and the
 * webhook receiver. A `World` outlives any number of lives of the service.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Logger from "effect/Logger";
import * as EffectRandom from "effect/Random";
import { Scheduler } from "effect/Scheduler";
import * as Scope from "effect/Scope";
import { singleRunner } from "../../src/actors/cluster.ts";
import { Entropy } from "../../src/actors/entropy.ts";
import { keyringLayer } from "../../src/actors/keyring.ts";
import { readConfig } from "../../src/config.ts";
import { uuidV7 } from "../../src/domain/ids.ts";
import { sealSecret } from "../../src/domain/secret.ts";
import { GitBackend } from "../../src/git/port.ts";
import { simulatedBackend, SimulatedRepositories } from "../../src/git/simulated.ts";
import { Limits } from "../../src/http/limits.ts";
import { makeReceive } from "../../src/http/webhooks.ts";
import { simulatedProvider, SimulatedSandboxes } from "../../src/sandbox/simulated.ts";
import { actorLayers, type Ports } from "../../src/service.ts";
import { Faults } from "../../src/store/faults.ts";
import { overTables } from "../../src/store/memory/layer.ts";
import { Tables, type TableSet } from "../../src/store/memory/tables.ts";
import { Identity, Projects, Secrets } from "../../src/store/port.ts";
import { Boundary } from "./boundary.ts";
import { Calm } from "./calm.ts";
import { Cursors } from "./cursors.ts";
import { simulatedDaemons, type SimulatedDaemons } from "./daemon.ts";
import { HOOK_SECRET, HOOK_VALUE, manifestOf } from "./manifests.ts";
import { portsBehind, type Twins } from "./ports.ts";
import { Random } from "./random.ts";
import { SimulatedTime } from "./time.ts";

/** Friday noon. */
const BEGINNING = Date.UTC(2026, 10, 20, 12);
const MASTER = { current: { version: 1, bytes: new Uint8Array(32) }, former: [] };
const id = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;

export const ACCOUNTS = [id(1), id(2)] as const;
export const USERS = [id(11), id(12)] as const;
/** The account of each project. */
export const PROJECTS = [
  { id: id(21), account: 0 },
  { id: id(22), account: 0 },
  { id: id(23), account: 1 },
] as const;
export const NODE = id(9);
const FIRST_CAP = 3;
export const BOOT_TIMEOUT_MS = 4_000;
const IDLE_TIMEOUT_MS = 45_000;
const MAX_TURN_MS = 200_000;
/** Long, so that what no signal told is late, and seen to be. */
const RECOVERY_MS = 30_000;

const CONFIG = readConfig(
  {
    PLATFORM_BOOT_TIMEOUT_MS: String(BOOT_TIMEOUT_MS),
    PLATFORM_IDLE_TIMEOUT_MS: String(IDLE_TIMEOUT_MS),
    PLATFORM_MAX_TURN_MS: String(MAX_TURN_MS),
    PLATFORM_RECOVERY_INTERVAL_MS: String(RECOVERY_MS),
    // An instant whose message was overtaken by another is found by the next poll: within this, for the checkers.
    PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS: "15000",
    PLATFORM_ACTOR_IDLE_MS: "20000",
    PLATFORM_QUEUE_TTL_MS: "600000",
    PLATFORM_QUEUE_MAX: "6",
  },
  "/",
);

/** For so long after it was over a disturbance excuses what is late, ms. */
const AFTERMATH_MS = 6_000;

/** What an endpoint's effect may ask for. */
export type Services = Layer.Success<ReturnType<typeof serviceOver>> | Limits;
type Receive = Effect.Success<typeof makeReceive>;

const serviceOver = (ports: Layer.Layer<Ports>) => actorLayers({ config: CONFIG, nodeId: NODE, ports });

/** A life of the service that has started. */
export interface Life {
  readonly context: Context.Context<Services>;
  readonly receive: Receive;
}

const twinsOf = (daemons: SimulatedDaemons) =>
  Layer.mergeAll(
    overTables,
    simulatedBackend,
    simulatedProvider({ bootMs: 40 }),
    daemons.layer,
    keyringLayer(MASTER),
  ).pipe(Layer.provideMerge(Tables.layer));

export class World {
  readonly time: SimulatedTime;
  readonly boundary: Boundary;
  readonly daemons: SimulatedDaemons;
  readonly twins: Context.Context<
    Twins | Tables | SimulatedRepositories | Layer.Success<ReturnType<typeof keyringLayer>>
  >;
  readonly tables: TableSet;
  readonly calm = new Calm();
  /** Until when, in ms of `elapsed`, what goes on may be late for what went wrong before. */
  disturbedUntil = 0;
  /** When the clock was set last, in ms of `elapsed`. */
  clockSetAt = -Infinity;
  /** Called when a sandbox that is there is about to be destroyed. */
  onDestroy: (sandboxId: string) => void = () => undefined;
  readonly cursors = new Cursors();
  life: Life | null = null;
  providerFaults = 0;
  /** Sandboxes whose destruction was said to have succeeded and did nothing. */
  readonly liedAbout = new Set<string>();
  /** So many destructions are to be said to have succeeded that did nothing. */
  lies = 0;
  /** What the service said that nobody should have to read. */
  readonly defects: string[] = [];
  readonly seed: number;
  readonly #random: (label: string) => Random;

  constructor(seed: number) {
    this.seed = seed;
    this.#random = (label) => new Random(seed, label);
    this.time = new SimulatedTime(BEGINNING, this.#random("schedule"));
    this.boundary = new Boundary({ time: this.time, random: this.#random("boundary") });
    this.daemons = simulatedDaemons({
      time: this.time,
      random: this.#random("daemons"),
      maxTurnMs: CONFIG.maxTurnMs,
    });
    this.twins = Effect.runSync(Effect.scoped(Layer.build(twinsOf(this.daemons))));
    this.tables = Context.get(this.twins, Tables);
    Effect.runSync(Effect.provideContext(settled, this.twins));
    this.#entropy = this.#random("entropy");
    this.#jitter = this.#random("jitter");
    this.#providerRandom = this.#random("provider");
  }

  readonly #entropy: Random;
  readonly #jitter: Random;
  readonly #providerRandom: Random;

  /** Asks a twin itself, past the boundary. */
  ask<A, E>(effect: Effect.Effect<A, E, Twins | SimulatedRepositories>): A {
    return Effect.runSync(
      Effect.provideContext(effect, this.twins as Context.Context<Twins | SimulatedRepositories>).pipe(
        Effect.provideService(Clock.Clock, this.time.clock()),
      ),
    );
  }

  fresh(): string {
    return uuidV7(this.time.wall, this.#entropy.bytes(16));
  }

  /** What every fiber of this life goes by. */
  #surroundings() {
    return Context.make(Scheduler, this.time.scheduler()).pipe(
      Context.add(Clock.Clock, this.time.clock()),
      Context.add(EffectRandom.Random, {
        nextIntUnsafe: () => this.#jitter.next(),
        nextDoubleUnsafe: () => this.#jitter.fraction(),
      }),
      Context.add(Entropy, (bytes: number) => this.#entropy.bytes(bytes)),
      Context.add(Faults, (point) => {
        this.boundary.hit(`passed ${point}`);
        this.boundary.pass(`at ${point}`, true);
      }),
      Context.add(Logger.CurrentLoggers, new Set([this.#logger()])),
    );
  }

  #logger() {
    return Logger.make<unknown, void>(({ message, logLevel }) => {
      const text = Array.isArray(message) ? String(message[0]) : String(message);
      if (logLevel === "Warn" || logLevel === "Error") this.boundary.note(`log ${logLevel} ${text}`);
    });
  }

  /** The ports of this life. */
  #ports() {
    return portsBehind(this.twins as unknown as Context.Context<Twins>, {
      boundary: this.boundary,
      random: this.#providerRandom,
      life: this.time.life,
      providerFaults: () => this.providerFaults,
      lies: (sandboxId) => {
        if (this.lies === 0) return false;
        this.lies -= 1;
        this.liedAbout.add(sandboxId);
        return true;
      },
      destroying: (sandboxId) => this.onDestroy(sandboxId),
    });
  }

  /** Begins a life of the service; it is there once `life` is. */
  start(): void {
    this.time.begin();
    this.boundary.dead = false;
    this.life = null;
    this.disturb();
    const surroundings = this.#surroundings();
    const ports = Layer.mergeAll(
      Layer.succeedContext(this.#ports() as unknown as Context.Context<Exclude<Ports, never>>),
      singleRunner,
    );
    const living = Effect.gen({ self: this }, function* () {
      const scope = yield* Scope.make();
      const service = yield* Layer.buildWithScope(serviceOver(ports), scope);
      const context = Context.add(service, Limits, CONFIG).pipe(Context.merge(surroundings));
      const receive = yield* Effect.provideContext(makeReceive, context);
      this.life = { context, receive };
      this.boundary.note("up");
      return yield* Effect.never;
    });
    const fiber = Effect.runForkWith(surroundings)(living);
    fiber.addObserver((exit) => {
      this.defects.push(`the service ended by itself: ${Exit.isFailure(exit) ? String(exit.cause) : ""}`);
    });
  }

  /** Something went wrong, or was changed without a word to the service. */
  disturb(): void {
    this.disturbedUntil = this.time.elapsed + AFTERMATH_MS;
    this.calm.disturb();
  }

  get isCalm(): boolean {
    const { faults, outages } = this.boundary;
    const isFlaky = Object.values(faults).some((share) => share > 0);
    const isOut = [...outages.values()].some((until) => until + AFTERMATH_MS > this.time.elapsed);
    return !isFlaky && !isOut && this.time.elapsed > this.disturbedUntil;
  }

  /** The service is dead; nothing of it runs on. */
  bury(): void {
    this.boundary.kill();
    this.life = null;
    this.time.begin();
  }

  /** Runs an endpoint's effect as the service does; `then` hears its end, if the service lives to tell. */
  request<A, E>(effect: Effect.Effect<A, E, Services>, then: (exit: Exit.Exit<A, E>) => void): boolean {
    if (this.life === null || this.boundary.dead) return false;
    const { life } = this.time;
    const fiber = Effect.runForkWith(this.life.context)(effect);
    fiber.addObserver((exit) => {
      if (life === this.time.life && !this.boundary.dead) then(exit);
    });
    return true;
  }

  sandboxes() {
    return this.ask(Effect.flatMap(SimulatedSandboxes, ({ all }) => all));
  }
}

/** Two accounts with three projects, each with a repository, a manifest and a secret. */
const settled = Effect.gen(function* () {
  const tables = yield* Tables;
  yield* (yield* Identity).bootstrap({
    accountId: ACCOUNTS[0],
    userId: USERS[0],
    tokenId: id(31),
    tokenHash: "0".repeat(64),
    tier: "free",
    cap: FIRST_CAP,
    now: BEGINNING,
  });
  const first = tables.accounts.get(ACCOUNTS[0]);
  if (first === undefined) return yield* Effect.die("there is no account");
  tables.accounts.set(ACCOUNTS[1], { ...first, name: "second" });
  tables.users.set(USERS[1], { accountId: ACCOUNTS[1], name: "second" });
  for (const [index, project] of PROJECTS.entries()) {
    yield* (yield* GitBackend).create({ projectId: project.id, importFrom: null, defaultBranch: "main" });
    yield* (yield* Projects).create({
      id: project.id,
      accountId: ACCOUNTS[project.account],
      name: `project ${index}`,
      repository: { kind: "hosted" },
      defaultBranch: "main",
      createdBy: USERS[project.account],
      now: BEGINNING,
    });
    yield* (yield* SimulatedRepositories).commit(
      { projectId: project.id },
      { branch: "main", onto: null, files: { "platform.toml": manifestOf(index * 24) }, subject: "manifest" },
    );
    const place = { projectId: project.id, name: HOOK_SECRET, version: 1 };
    const envelope = sealSecret(MASTER, place, { value: HOOK_VALUE, nonce: new Uint8Array(12) });
    yield* (yield* Secrets).put({ ...place, envelope }, { userId: USERS[project.account], now: BEGINNING });
  }
});
