/**
 * The whole service without its sockets, over its twins: real actors, machines, duties, the endpoints' own effects and the
 * webhook receiver, on one node or on several over one store. A `World` outlives any number of lives of its nodes.
 *
 * Where several nodes are, either each takes every actor for its own: what a cluster's shards keep apart is owned twice
 * there, all the time, and fences and unique keys must hold what ownership does not (threats.md, fact 8). Or actors have their
 * places (places.ts), and what goes on must be in time.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Logger from "effect/Logger";
import * as EffectRandom from "effect/Random";
import { TracerEnabled } from "effect/References";
import { Scheduler } from "effect/Scheduler";
import * as Scope from "effect/Scope";
import { singleRunner } from "../../src/actors/cluster.ts";
import { Lease } from "../../src/actors/lease.ts";
import { requestBranchesLayer } from "../../src/features/change-requests/duty.ts";
import { Entropy } from "../../src/services/entropy.ts";
import { keyringLayer } from "../../src/services/keyring.ts";
import { uuidV7 } from "../../src/domain/ids.ts";
import { SimulatedSaves } from "../twins/saves.ts";
import { simulatedBackend, SimulatedRepositories } from "../twins/git/repositories.ts";
import { Limits } from "../../src/http/limits.ts";
import { makeReceive } from "../../src/http/webhooks/webhooks.ts";
import { simulatedProvider, SimulatedSandboxes } from "../../src/sandbox/simulated.ts";
import { simulatedSite } from "../../src/builder/site/simulated.ts";
import { actorLayers, type AddressBook, type Ports } from "../../src/service.ts";
import { Faults } from "../../src/store/ports/faults.ts";
import { overTables } from "../twins/store/layer.ts";
import { Tables, type TableSet } from "../twins/store/tables.ts";
import { ConnectorServers } from "../../src/connectors/port.ts";
import { Boundary } from "./world/boundary.ts";
import { AFTERMATH_MS, Calm } from "./oracles/calm.ts";
import { configOf, hasApprovals, hasPeople, hasWarm, hasWork } from "./config.ts";
import { Cursors } from "./world/cursors.ts";
import { simulatedDaemons, type SimulatedDaemons } from "./world/daemon.ts";
import type { MadeMerge } from "./world/merges.ts";
import { portsBehind, STORE, type Twins } from "./ports.ts";
import type { Bridge } from "./postgres/bridge.ts";
import type { Order } from "./postgres/orders.ts";
import { storeOver } from "./postgres/ports.ts";
import { readTables } from "./postgres/tables-of.ts";
import { isPlaced, nodesOf, type Node } from "./world/nodes.ts";
import { Places } from "./world/places.ts";
import { Random } from "./random.ts";
import { addAccount } from "./world/restoring.ts";
import { Secrecy } from "./oracles/secrecy.ts";
import { BEGINNING, MASTER, settled, withConnectors, withProjects, withWarmth } from "./oracles/settled.ts";
import { Upstream } from "./world/upstream.ts";
import { Work } from "./world/work.ts";
import { Process, SimulatedTime, WallClock } from "./time.ts";

/** What an endpoint's effect may ask for. */
export type Services = Layer.Success<ReturnType<typeof serviceOver>> | Limits;

interface ServiceParts {
  readonly config: ReturnType<typeof configOf>;
  readonly nodeId: string;
  readonly ports: Layer.Layer<Ports>;
  readonly addressBook: AddressBook;
}

const serviceOver = (parts: ServiceParts) =>
  Layer.provideMerge(
    requestBranchesLayer({ intervalMs: parts.config.manifestSyncMs }),
    actorLayers({ ...parts, publicUrl: "http://localhost:8080" }),
  );

const twinsOf = (daemons: SimulatedDaemons, saves: SimulatedSaves) =>
  Layer.mergeAll(
    saves.layer,
    simulatedBackend,
    simulatedSite,
    simulatedProvider({ bootMs: 40 }),
    daemons.layer,
    keyringLayer(MASTER),
  ).pipe(Layer.provideMerge(overTables), Layer.provideMerge(Tables.layer));

export class World {
  readonly time: SimulatedTime;
  readonly boundary: Boundary;
  readonly daemons: SimulatedDaemons;
  readonly saves = new SimulatedSaves();
  /** Null: the world's agents write nothing. */
  readonly work: Work | null;
  /** The server of connectors. Null: the projects have none. */
  readonly upstream: Upstream | null;
  readonly twins: Context.Context<
    Twins | Tables | SimulatedRepositories | Layer.Success<ReturnType<typeof keyringLayer>>
  >;
  /** null: the store is the twin. */
  readonly bridge: Bridge | null;
  #tables: TableSet;
  readonly #nodeOf = new Map<string, string>();
  readonly calm = new Calm();
  readonly secrecy = new Secrecy();
  /** Until when, in ms of `elapsed`, what goes on may be late for what went wrong before. */
  disturbedUntil = 0;
  /** Whether an owner that does not know better may come late: it was frozen, or another owns what it owns. */
  isOwnershipVague: boolean;
  /** Sessions whose commands a fault removed. */
  readonly forgotten = new Set<string>();
  /** By how much counters were made wrong and are not known to be mended. */
  readonly distorted = new Map<string, number>();
  /** When the clock was set last, in ms of `elapsed`. */
  clockSetAt = -Infinity;
  /** Called when an existing sandbox is about to be destroyed. */
  onDestroy: (sandboxId: string) => void = () => undefined;
  /** Called when git has merged, and moved a branch. */
  onMerged: (merge: MadeMerge) => void = () => undefined;
  readonly cursors = new Cursors();
  readonly nodes: readonly Node[];
  readonly places: Places;
  /** Called with each message to a trigger's actor. */
  onTold: (triggerId: string) => void = () => undefined;
  providerFaults = 0;
  /** Sandboxes whose destruction was said to have succeeded and did nothing. */
  readonly liedAbout = new Set<string>();
  /** The number of destructions that must report success without any effect. */
  lies = 0;
  /** Messages of the service that must not occur. */
  readonly defects: string[] = [];
  readonly seed: number;
  readonly #random: (label: string) => Random;

  constructor(seed: number, bridge: Bridge | null = null) {
    this.seed = seed;
    this.bridge = bridge;
    this.#random = (label) => new Random(seed, label);
    this.time = new SimulatedTime(this.#random("schedule"));
    this.#reference = new Process(this.time, new WallClock(this.time, BEGINNING));
    this.nodes = nodesOf(seed, { time: this.time, random: this.#random("nodes") });
    this.isOwnershipVague = this.nodes.length > 1;
    this.places = new Places({
      isPlaced: isPlaced(seed),
      nodes: this.nodes,
      time: this.time,
      random: this.#random("places"),
      disturb: () => this.disturb(),
      told: (id) => this.onTold(id),
    });
    this.boundary = new Boundary({ time: this.time, random: this.#random("boundary") });
    this.boundary.onMarked = (forMs) => this.disturb(forMs);
    this.upstream = hasApprovals(seed) ? new Upstream(this.boundary, this.#random("upstream")) : null;
    this.daemons = simulatedDaemons({
      time: this.time,
      wallOf: (sandboxId) => this.wallOf(sandboxId),
      randomOf: this.#random,
      maxTurnMs: configOf(seed).maxTurnMs,
      wantsWork: (sandboxId) =>
        this.work?.hasRestored(sandboxId) === false && this.sandboxes().get(sandboxId)?.spec.restore === true,
      hasPeople: hasPeople(seed),
    });
    this.work = hasWork(seed) ? new Work({ time: this.time, randomOf: this.#random, ...this.daemons }) : null;
    if (this.work !== null) this.saves.workspaces = this.work;
    const twins = Effect.runSync(Effect.scoped(Layer.build(twinsOf(this.daemons, this.saves))));
    this.#tables = Context.get(twins, Tables);
    this.twins = bridge === null ? twins : this.#overPostgres(bridge, twins);
    Effect.runSync(Effect.provideContext(settled, this.twins));
    addAccount(this);
    Effect.runSync(Effect.provideContext(withProjects, this.twins));
    if (this.upstream !== null) Effect.runSync(Effect.provideContext(withConnectors, this.twins));
    if (hasWarm(seed)) Effect.runSync(Effect.provideContext(withWarmth, this.twins));
    this.refresh();
    this.#entropy = this.#random("entropy");
    this.#jitter = this.#random("jitter");
    this.#providerRandom = this.#random("provider");
    if (this.places.isPlaced) Effect.runForkWith(this.#surroundings(this.#reference))(this.places.oversee);
  }

  readonly #entropy: Random;
  readonly #jitter: Random;
  readonly #providerRandom: Random;
  /** Requests past the boundary go by this process's clock. */
  readonly #reference: Process;

  /** Nothing goes on in the store while the clock moves, and what dies there has no connection left. */
  #overPostgres(bridge: Bridge, twins: World["twins"]): World["twins"] {
    bridge.order({ do: "begin" });
    this.time.onIdle = () => {
      if (bridge.isQuiet) return false;
      bridge.await();
      return true;
    };
    this.time.onEnd = ({ name }) => void bridge.order({ do: "kill", life: name });
    return storeOver(twins, STORE, { life: null, call: (order) => bridge.ask(order) });
  }

  /** What the checkers look at, and steps choose from: over Postgres as it was at the last `refresh`. */
  get tables(): TableSet {
    return this.#tables;
  }

  refresh(): void {
    if (this.bridge !== null) this.#tables = readTables(this.bridge);
  }

  /** The clock that is the furthest behind, and the one furthest ahead, ms since the epoch. */
  get walls(): { readonly least: number; readonly most: number } {
    const walls = this.nodes.map(({ wall }) => wall.now);
    return { least: Math.min(...walls), most: Math.max(...walls) };
  }

  /** A sandbox's clock is that of the node which has it: by its record, for a late node may have tried to open it too. */
  wallOf(sandboxId: string): number {
    const nodeId = this.tables.sandboxes.get(sandboxId)?.record.nodeId ?? this.#nodeOf.get(sandboxId);
    return (this.nodes.find(({ id: own }) => own === nodeId) ?? this.nodes[0])?.wall.now ?? 0;
  }

  /** Asks a twin itself, past the boundary. */
  ask<A, E>(effect: Effect.Effect<A, E, Twins | SimulatedRepositories>): A {
    return Effect.runSync(
      Effect.provideContext(effect, this.twins as Context.Context<Twins | SimulatedRepositories>).pipe(
        Effect.provideService(Clock.Clock, this.#reference.clock),
      ),
    );
  }

  fresh(): string {
    return uuidV7(this.walls.least, this.#entropy.bytes(16));
  }

  /** The services that every fiber of a process uses. */
  #surroundings(process: Process) {
    return Context.make(Scheduler, process.scheduler).pipe(
      Context.add(Clock.Clock, process.clock),
      Context.add(EffectRandom.Random, {
        nextIntUnsafe: () => this.#jitter.next(),
        nextDoubleUnsafe: () => this.#jitter.fraction(),
      }),
      Context.add(Entropy, (bytes: number) => this.#entropy.bytes(bytes)),
      Context.add(Faults, (point) => {
        this.boundary.hit(`passed ${point}`);
        this.boundary.pass(`at ${point}`, true, process);
      }),
      Context.add(ConnectorServers, this.upstream?.for(process) ?? ConnectorServers.defaultValue()),
      Context.add(Logger.CurrentLoggers, new Set([this.#logger()])),
      Context.add(TracerEnabled, false), // as in src/serve.ts
    );
  }

  #logger() {
    return Logger.make<unknown, void>(({ message, cause, logLevel }) => {
      this.secrecy.lookAtLog(message, cause);
      const text = Array.isArray(message) ? String(message[0]) : String(message);
      if (logLevel === "Warn" || logLevel === "Error") this.boundary.note(`log ${logLevel} ${text}`);
    });
  }

  #ports(process: Process) {
    const { bridge } = this;
    const twins = this.twins as unknown as Context.Context<Twins>;
    const call = (order: Order) => bridge?.call(process, order) ?? Effect.never;
    return portsBehind(bridge === null ? twins : storeOver(twins, STORE, { life: process.name, call }), {
      boundary: this.boundary,
      isAsking: this.upstream !== null,
      isWarm: hasWarm(this.seed),
      saves: this.saves,
      random: this.#providerRandom,
      process,
      providerFaults: () => this.providerFaults,
      lies: (sandboxId) => {
        if (this.lies === 0) return false;
        this.lies -= 1;
        this.liedAbout.add(sandboxId);
        return true;
      },
      opening: ({ id: sandboxId, nodeId }) => this.#nodeOf.set(sandboxId, nodeId),
      destroying: (sandboxId) => this.onDestroy(sandboxId),
      merged: (merge) => this.onMerged(merge),
    });
  }

  /** Begins a life of the service; it exists once `life` is set. */
  start(node: Node): void {
    const process = new Process(this.time, node.wall);
    node.process = process;
    node.life = null;
    this.disturb();
    const surroundings = this.#surroundings(process);
    const ports = Layer.mergeAll(
      Layer.succeedContext(this.#ports(process) as unknown as Context.Context<Exclude<Ports, never>>),
      singleRunner,
      Layer.succeed(Lease, { covers: ({ entityId }) => this.places.covers(node, entityId) }),
    );
    const config = configOf(this.seed);
    const addressBook = this.places.addressBook(node, process, Effect.runForkWith(surroundings));
    const living = Effect.gen({ self: this }, function* () {
      const scope = yield* Scope.make();
      const parts = { config, nodeId: node.id, ports, addressBook };
      const service = yield* Layer.buildWithScope(serviceOver(parts), scope);
      const context = Context.add(service, Limits, config).pipe(Context.merge(surroundings));
      const receive = yield* Effect.provideContext(makeReceive, context);
      node.life = { context, receive };
      this.boundary.note(`up ${this.nodes.indexOf(node)}`);
      return yield* Effect.never;
    });
    const fiber = Effect.runForkWith(surroundings)(living);
    fiber.addObserver((exit) => {
      this.defects.push(`the service ended by itself: ${Exit.isFailure(exit) ? String(exit.cause) : ""}`);
    });
  }

  /** The node's service is dead, no part of it continues to run, and nothing is started there for this time, ms. */
  kill(node: Node, downMs: number): void {
    this.time.end(node.process);
    node.life = null;
    node.backAt = this.time.elapsed + downMs;
    this.disturb();
  }

  /** The node stands still for so long, ms, and does not know. */
  freeze(node: Node, ms: number): void {
    if (!node.process.isUp) return;
    this.time.freeze(node.process);
    node.backAt = this.time.elapsed + ms;
    this.isOwnershipVague = true;
    this.disturb();
  }

  /** Starts or thaws each node that is due. */
  #back(): void {
    for (const node of this.nodes) {
      if (node.backAt > this.time.elapsed || node.process.isUp) continue;
      if (node.process.isDead) this.start(node);
      else {
        this.boundary.note(`thawed ${this.nodes.indexOf(node)}`);
        this.time.thaw(node.process);
        this.disturb();
      }
    }
  }

  /** Time passes; a node that dies meanwhile is started again. */
  pass(ms: number): void {
    const isDue = ({ process, backAt }: Node) => !process.isUp && backAt <= this.time.elapsed;
    for (let left = ms; left > 0 || this.nodes.some(isDue);) {
      this.#back();
      const dead = this.#dead;
      const due = this.nodes.filter(({ process }) => !process.isUp).map(({ backAt }) => backAt);
      // One that has died as it started is due already: no time passes.
      const next = Math.max(0, Math.min(left, ...due.map((at) => at - this.time.elapsed)));
      left -= next - this.time.advance(next, () => this.#dead > dead);
    }
  }

  get #dead(): number {
    return this.nodes.filter(({ process }) => process.isDead).length;
  }

  /** So that all of them run, whatever was to come. */
  awaken(): void {
    for (const node of this.nodes) node.backAt = Math.min(node.backAt, this.time.elapsed);
  }

  /** Something went wrong, or was changed without a word to the service. */
  disturb(forMs = 0): void {
    this.disturbedUntil = Math.max(this.disturbedUntil, this.time.elapsed + forMs + AFTERMATH_MS);
    this.calm.disturb();
  }

  get isCalm(): boolean {
    const { faults, outages } = this.boundary;
    const isFlaky = Object.values(faults).some((share) => share > 0);
    const isWhole = this.nodes.every(({ process }) => process.isUp);
    const isOut = [...outages.values()].some((until) => until + AFTERMATH_MS > this.time.elapsed);
    return isWhole && !isFlaky && !isOut && this.time.elapsed > this.disturbedUntil;
  }

  /** Runs an endpoint's effect as the service does; `then` hears its end, if the service lives to tell. */
  request<A, E>(
    node: Node,
    effect: Effect.Effect<A, E, Services>,
    then: (exit: Exit.Exit<A, E>) => void,
  ): boolean {
    const { life, process } = node;
    if (life === null || !process.isUp) return false;
    const fiber = Effect.runForkWith(life.context)(effect);
    fiber.addObserver((exit) => {
      if (!process.isDead) then(exit);
    });
    return true;
  }

  /** The secrets of a sandbox must not appear elsewhere. */
  keepSecret(sandboxId: string): void {
    const spec = this.sandboxes().get(sandboxId)?.spec;
    for (const value of Object.values(spec?.secrets ?? {})) this.secrecy.keep(value);
    for (const value of Object.values(spec?.environment ?? {}))
      if (value.startsWith("platform_")) this.secrecy.keep(value);
  }

  sandboxes() {
    return this.ask(Effect.flatMap(SimulatedSandboxes, ({ all }) => all));
  }
}
