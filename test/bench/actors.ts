/**
 * What an actor costs, in four forms that step the same machine: a bare fiber with a queue, our host, which steps in its
 * caller's fiber, our host behind a fiber and a queue of its own, and our host as an entity of the cluster.
 * `npm run bench:actors`; ratios hold, absolute figures are this machine's. The last line is one JSON object.
 */
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import type * as Scope from "effect/Scope";
import { Actors } from "../../src/services/actors.ts";
import { actorLayer, actorsLayer, singleRunner } from "../../src/actors/cluster.ts";
import { startActor } from "../../src/actors/host.ts";
import { volatileMemory } from "../../src/actors/volatile.ts";
import {
  account,
  type AccountCommand,
  type AccountEvent,
  type AccountSnapshot,
} from "../../src/machines/account.ts";
import type { Step } from "../../src/machines/step.ts";

const ACTORS = 10_000;
const ROUNDS = 5;
const CONCURRENCY = 64;

/** A state in which a signal is taken and commands nothing: what is measured is the message. */
const DRAINING: Step<AccountSnapshot, AccountCommand> = {
  snapshot: { state: "draining", context: { again: false } },
  commands: [],
  accepted: true,
};
const SIGNAL: AccountEvent = { type: "slot.freed" };

/** Sends one message to the actor with that number, starts the actor if needed, and waits for its answer. */
type Send = (index: number) => Effect.Effect<unknown, unknown>;

const bare = Effect.gen(function* () {
  interface Message {
    readonly event: AccountEvent;
    readonly answer: Deferred.Deferred<AccountSnapshot>;
  }
  const queues = new Map<number, Queue.Queue<Message>>();
  const begin = Effect.fnUntraced(function* (index: number) {
    const queue = yield* Queue.unbounded<Message>();
    let { snapshot } = DRAINING;
    const loop = Effect.flatMap(Queue.take(queue), ({ event, answer }) => {
      ({ snapshot } = account.step(snapshot, event));
      return Deferred.succeed(answer, snapshot);
    });
    yield* Effect.forkScoped(Effect.forever(loop));
    queues.set(index, queue);
    return queue;
  });
  const scoped = yield* Effect.context<Scope.Scope>();
  const send: Send = Effect.fnUntraced(function* (index) {
    const queue = queues.get(index) ?? (yield* Effect.provideContext(begin(index), scoped));
    const answer = yield* Deferred.make<AccountSnapshot>();
    yield* Queue.offer(queue, { event: SIGNAL, answer });
    return yield* Deferred.await(answer);
  });
  return send;
});

const startHost = (id: string) =>
  startActor({
    id,
    machine: account,
    memory: volatileMemory<AccountSnapshot, AccountEvent, AccountCommand>(DRAINING),
    handlers: { drainQueue: { perform: () => Effect.never }, pause: { perform: () => Effect.never } },
    mailbox: 64,
    restarts: { restarts: 5, withinMs: 30_000 },
  });

const host = Effect.gen(function* () {
  const actors = new Map<number, Effect.Success<ReturnType<typeof startHost>>>();
  const scoped = yield* Effect.context<Scope.Scope>();
  const send: Send = Effect.fnUntraced(function* (index) {
    const actor = actors.get(index) ?? (yield* Effect.provideContext(startHost(String(index)), scoped));
    actors.set(index, actor);
    return yield* actor.tell(SIGNAL);
  });
  return send;
});

/** The textbook's actor: one fiber owns the machine and takes messages from a queue. */
const hostBehindQueue = Effect.gen(function* () {
  type Host = Effect.Success<ReturnType<typeof startHost>>;
  interface Message {
    readonly answer: Deferred.Deferred<Told, TellFailure>;
  }
  type Told = Effect.Success<ReturnType<Host["tell"]>>;
  type TellFailure = Effect.Error<ReturnType<Host["tell"]>>;
  const queues = new Map<number, Queue.Queue<Message>>();
  const begin = Effect.fnUntraced(function* (index: number) {
    const queue = yield* Queue.unbounded<Message>();
    const actor = yield* startHost(String(index));
    const loop = Effect.flatMap(Queue.take(queue), ({ answer }) =>
      Effect.flatMap(Effect.exit(actor.tell(SIGNAL)), (exit) => Deferred.done(answer, exit)),
    );
    yield* Effect.forkScoped(Effect.forever(loop));
    queues.set(index, queue);
    return queue;
  });
  const scoped = yield* Effect.context<Scope.Scope>();
  const send: Send = Effect.fnUntraced(function* (index) {
    const queue = queues.get(index) ?? (yield* Effect.provideContext(begin(index), scoped));
    const answer = yield* Deferred.make<Told, TellFailure>();
    yield* Queue.offer(queue, { answer });
    return yield* Deferred.await(answer);
  });
  return send;
});

const cluster = Effect.gen(function* () {
  const entities = actorLayer("account", startHost, { maxIdleMs: 3_600_000, again: null });
  const layer = entities.pipe(Layer.provideMerge(actorsLayer), Layer.provideMerge(singleRunner));
  const actors = Context.get(yield* Layer.build(layer), Actors);
  const send: Send = (index) => actors.account(String(index), SIGNAL);
  return send;
});

interface Cost {
  readonly bytes_per_actor: number;
  readonly us_per_message: number;
}

const usedHeap = Effect.sync(() => {
  if (globalThis.gc === undefined) throw new Error("run this with --expose-gc (npm run bench:actors)");
  globalThis.gc();
  return process.memoryUsage().heapUsed;
});

const toAll = (send: Send) =>
  Effect.forEach(
    Array.from({ length: ACTORS }, (_, index) => index),
    send,
    { concurrency: CONCURRENCY, discard: true },
  );

const measure = (form: Effect.Effect<Send, unknown, Scope.Scope>): Effect.Effect<Cost, unknown> =>
  Effect.gen(function* () {
    const send = yield* form;
    // The fixed cost without actors (the runner, the clients) does not count as an actor's cost.
    yield* send(0);
    const empty = yield* usedHeap;
    yield* toAll(send);
    const full = yield* usedHeap;
    const begun = performance.now();
    for (let round = 0; round < ROUNDS; round += 1) yield* toAll(send);
    const elapsed = performance.now() - begun;
    return {
      bytes_per_actor: Math.round((full - empty) / ACTORS),
      us_per_message: Number(((elapsed * 1000) / (ROUNDS * ACTORS)).toFixed(2)),
    };
  }).pipe(Effect.scoped);

const FORMS = { fiber_and_queue: bare, host, host_behind_queue: hostBehindQueue, cluster_entity: cluster };
type Form = keyof typeof FORMS;

const bench = Effect.gen(function* () {
  const costs: Partial<Record<Form, Cost>> = {};
  // Once before it counts: the code is compiled by then.
  yield* Effect.forEach(Object.values(FORMS), measure);
  for (const name of Object.keys(FORMS) as Form[]) {
    const cost = yield* measure(FORMS[name]);
    costs[name] = cost;
    process.stdout.write(
      `${name.padEnd(18)} ${String(cost.bytes_per_actor).padStart(7)} B an actor ${String(cost.us_per_message).padStart(8)} µs a message\n`,
    );
  }
  const base = costs.fiber_and_queue;
  const ratio = (one: Cost, field: keyof Cost) => Number((one[field] / (base?.[field] ?? 1)).toFixed(2));
  const ratios = Object.fromEntries(
    Object.entries(costs).map(([name, cost]) => [
      name,
      { bytes: ratio(cost, "bytes_per_actor"), time: ratio(cost, "us_per_message") },
    ]),
  );
  process.stdout.write(
    `${JSON.stringify({ actors: ACTORS, messages: ACTORS * ROUNDS, ...costs, ratios })}\n`,
  );
});

await Effect.runPromise(bench);
