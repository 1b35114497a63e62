/**
 * Which node an actor lives on, in worlds whose nodes own actors as a cluster's do. Shards have one owner. Messages travel to
 * it: they may be late, or lost with or without having arrived. Shards move when a node dies, stands still or comes back, and now
 * and then by chance. A node learns a little later that shards were given to it or taken away, so two may believe that they own
 * the same, or none.
 *
 * In the other worlds each node takes every actor for its own.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { Actors, ActorUnavailable, Placement, type ActorKind } from "../../../src/services/actors.ts";
import { actorsLayer, TAKEOVER } from "../../../src/actors/cluster.ts";
import type { AddressBook } from "../../../src/service.ts";
import type { UnsettledActor } from "../../../src/store/ports/journal.ts";
import type { Random } from "../random.ts";
import type { Process, SimulatedTime } from "../time.ts";
import type { Node } from "./nodes.ts";

const SHARDS = 8;
/** How often the cluster looks at its nodes, and a node at what it owns, ms. */
const LOOK_MS = 250;
/** After so long without a word a node's shards are taken from it, ms: one that was killed, one that stands still. */
const DEAD_MS = 3_000;
const FROZEN_MS = 6_000;
/** A node that is back gets shards after so long, ms. */
const JOINED_MS = 1_000;
/** The longest time for which a moving shard has no owner, ms. */
const BETWEEN_MS = 1_000;
/** That a shard moves for no reason, at each look: once in a minute or two. */
const MOVES_BY_CHANCE = 0.003;
const LATE = 0.05;
const LATEST_MS = 2_000;
const LOST = 0.02;
/** A timer's message on its own node is seldom lost. */
const LOST_AT_HOME = 0.01;
/** The longest wait for an answer, ms. */
const PATIENCE_MS = 3_000;

type Tell = (id: string, event: never) => Effect.Effect<never, ActorUnavailable>;

interface Shard {
  owner: Node | null;
  /** Who gets it, and when in ms of `elapsed`. */
  next: Node | null;
  nextAt: number;
}

export interface PlacesParts {
  readonly isPlaced: boolean;
  readonly nodes: readonly Node[];
  readonly time: SimulatedTime;
  readonly random: Random;
  /** Called when something moved or was lost: what follows may be late. */
  readonly disturb: () => void;
  /** Called with each message to a trigger's actor, except those that are lost on their way. */
  readonly told: (triggerId: string) => void;
}

const shardOf = (id: string): number =>
  [...id].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 65_521, 7) % SHARDS;

const unavailable = (actorId: string) =>
  Effect.fail(new ActorUnavailable({ actorId, reason: "no node answers" }));

export class Places {
  readonly #parts: PlacesParts;
  readonly #shards: readonly Shard[];
  /** What each node believes to own. */
  readonly #believed = new Map<Node, ReadonlySet<number>>();
  readonly #actors = new Map<Node, { readonly local: Actors["Service"]; readonly run: Run }>();
  /** When each node was last seen up, and since when it has been, in ms of `elapsed`. */
  readonly #seen = new Map<Node, { readonly at: number; readonly since: number }>();
  /** How many messages to triggers of their own node are left until one is lost. */
  #untilLost = Infinity;

  constructor(parts: PlacesParts) {
    this.#parts = parts;
    this.#shards = Array.from({ length: SHARDS }, (_, index) => ({
      owner: null,
      next: parts.nodes[index % parts.nodes.length] ?? null,
      nextAt: 0,
    }));
  }

  get isPlaced(): boolean {
    return this.#parts.isPlaced;
  }

  /** Whether the actor lives on the node; of a shard that moves, on none. */
  isOn(node: Node, id: string): boolean {
    return !this.isPlaced || this.#shards[shardOf(id)]?.owner === node;
  }

  /** Whether the node certainly owns the actor: the cluster knows it as the owner, and saw it alive lately (src/actors/lease.ts). */
  covers(node: Node, id: string): boolean {
    const heardAt = this.#seen.get(node)?.at ?? -Infinity;
    return (
      !this.isPlaced ||
      (this.isOn(node, id) && this.#parts.time.elapsed - heardAt < TAKEOVER.shardLockExpiration)
    );
  }

  /** The so-many-th message from here on to a trigger of its own node is lost. */
  loseAtHome(nth: number): void {
    this.#untilLost = nth;
  }

  #isLostAtHome(kind: ActorKind | null): boolean {
    if (kind !== "trigger") return false;
    this.#untilLost -= 1;
    return this.#parts.random.chance(LOST_AT_HOME) || this.#untilLost === 0;
  }

  /** What never dies: it takes shards away and gives them. */
  get oversee(): Effect.Effect<never> {
    return Effect.forever(
      Effect.andThen(
        Effect.sleep(LOOK_MS),
        Effect.sync(() => this.#look()),
      ),
    );
  }

  #look(): void {
    const { nodes, random, time } = this.#parts;
    for (const node of nodes) {
      if (!node.process.isUp || node.life === null) continue;
      const { at = -Infinity, since = time.elapsed } = this.#seen.get(node) ?? {};
      const isBack = time.elapsed - at > 2 * LOOK_MS;
      this.#seen.set(node, { at: time.elapsed, since: isBack ? time.elapsed : since });
    }
    const up = nodes.filter((node) => this.#seen.get(node)?.at === time.elapsed);
    for (const shard of this.#shards) {
      if (shard.owner !== null && this.#isGone(shard.owner)) this.#move(shard, null);
      if (shard.owner === null && shard.nextAt <= time.elapsed) {
        const [first, ...others] = up;
        if (first === undefined) continue;
        shard.owner =
          shard.next !== null && up.includes(shard.next) ? shard.next : random.pick([first, ...others]);
        shard.next = null;
        this.#parts.disturb();
      }
    }
    for (const node of up) {
      const isNew = this.#shards.every(({ owner, next }) => owner !== node && next !== node);
      if (!isNew || time.elapsed - (this.#seen.get(node)?.since ?? 0) < JOINED_MS) continue;
      for (const shard of this.#shards) if (random.chance(1 / nodes.length)) this.#move(shard, node);
    }
    if (random.chance(MOVES_BY_CHANCE)) {
      const [first, ...others] = this.#shards;
      const [one, ...rest] = up;
      if (first !== undefined && one !== undefined)
        this.#move(random.pick([first, ...others]), random.pick([one, ...rest]));
    }
  }

  #isGone(node: Node): boolean {
    const silent = this.#parts.time.elapsed - (this.#seen.get(node)?.at ?? 0);
    return silent > (node.process.isFrozen ? FROZEN_MS : DEAD_MS);
  }

  #move(shard: Shard, next: Node | null): void {
    const { random, time } = this.#parts;
    shard.owner = null;
    shard.next = next;
    shard.nextAt = time.elapsed + random.between(0, BETWEEN_MS);
    this.#parts.disturb();
  }

  /** How one life of a node reaches actors. */
  addressBook(node: Node, process: Process, run: Run): AddressBook {
    this.#believed.set(node, new Set());
    this.#actors.delete(node);
    return Layer.effectContext(
      Effect.map(Actors, (local) => {
        if (!this.isPlaced) return this.#everywhere(local);
        this.#actors.set(node, { local, run });
        const tell =
          (kind: ActorKind): Tell =>
          (id, event) =>
            this.#send({ node, process, id, kind }, (actors) => (actors[kind] as unknown as Tell)(id, event));
        return Context.make(Placement, this.#placementOf(node)).pipe(
          Context.add(Actors, {
            session: tell("session"),
            sandbox: tell("sandbox"),
            account: tell("account"),
            trigger: tell("trigger"),
            changeRequest: tell("changeRequest"),
            conversation: tell("conversation"),
            environmentBuild: tell("environmentBuild"),
            wake: (kind: ActorKind, id: string) => {
              const woken = this.#send({ node, process, id, kind: null }, (actors) => actors.wake(kind, id));
              return Effect.asVoid(Effect.forkDetach(Effect.ignore(woken)));
            },
            load: (kind: ActorKind, unsettled: UnsettledActor) =>
              this.#send({ node, process, id: unsettled.id, kind: null }, (actors) =>
                actors.load(kind, unsettled),
              ).pipe(Effect.orElseSucceed(() => false)),
          } satisfies Record<keyof Actors["Service"], unknown> as unknown as Actors["Service"]),
        );
      }),
    ).pipe(Layer.provide(actorsLayer));
  }

  #everywhere(local: Actors["Service"]) {
    const placement = { isHere: () => true, moves: Effect.never };
    return Context.make(Placement, placement).pipe(
      Context.add(Actors, {
        ...local,
        trigger: (id, event) =>
          Effect.suspend(() => {
            this.#parts.told(id);
            return local.trigger(id, event);
          }),
      }),
    );
  }

  #placementOf(node: Node): Placement["Service"] {
    const look = Effect.sync(() => {
      const owned = new Set([...this.#shards.keys()].filter((index) => this.#shards[index]?.owner === node));
      const had = this.#believed.get(node) ?? new Set();
      this.#believed.set(node, owned);
      return owned.size !== had.size || [...owned].some((index) => !had.has(index));
    });
    return {
      isHere: (id) => this.#believes(node, id),
      moves: Effect.asVoid(
        Effect.repeat(look, { until: (hasMoved) => hasMoved, schedule: Schedule.spaced(LOOK_MS) }),
      ),
    };
  }

  #believes(node: Node, id: string): boolean {
    return this.#believed.get(node)?.has(shardOf(id)) === true;
  }

  #send<A, E>(
    { node, process, id, kind }: Sending,
    call: (actors: Actors["Service"]) => Effect.Effect<A, E>,
  ): Effect.Effect<A, E | ActorUnavailable> {
    const { random, time } = this.#parts;
    return Effect.suspend((): Effect.Effect<A, E | ActorUnavailable> => {
      const own = this.#actors.get(node);
      if (own === undefined || process.isDead) return Effect.never;
      if (this.#believes(node, id)) {
        if (this.#isLostAtHome(kind)) {
          this.#parts.disturb();
          return Effect.never;
        }
        if (kind === "trigger") this.#parts.told(id);
        return call(own.local);
      }
      const owner = this.#shards[shardOf(id)]?.owner ?? null;
      const [isLostOnTheWay, isLostOnTheWayBack] = [random.chance(LOST / 2), random.chance(LOST / 2)];
      if (kind === "trigger" && !isLostOnTheWay) this.#parts.told(id);
      if (isLostOnTheWay || isLostOnTheWayBack) this.#parts.disturb();
      const travel = random.chance(LATE) ? random.between(60, LATEST_MS) : random.between(0, 60);
      const arrived = Effect.suspend((): Effect.Effect<A, E | ActorUnavailable> => {
        const there = owner === null ? undefined : this.#actors.get(owner);
        if (owner === null || there === undefined || owner.process.isDead || isLostOnTheWay)
          return Effect.never;
        if (!this.#believes(owner, id)) return unavailable(id);
        return Effect.callback<A, E>((resume) => {
          // Not at once: a frozen process does nothing.
          const fiber = there.run(Effect.andThen(Effect.yieldNow, call(there.local)));
          fiber.addObserver((exit) => {
            if (!isLostOnTheWayBack)
              resume(Exit.isSuccess(exit) ? Effect.succeed(exit.value) : Effect.failCause(exit.cause));
          });
        });
      });
      return Effect.timeoutOrElse(Effect.andThen(Effect.sleep(travel), arrived), {
        duration: PATIENCE_MS,
        orElse: () => {
          if (time.elapsed > 0) this.#parts.disturb();
          return unavailable(id);
        },
      });
    });
  }
}

interface Sending {
  readonly node: Node;
  readonly process: Process;
  readonly id: string;
  /** null: it is a wake. */
  readonly kind: ActorKind | null;
}

/** Runs an effect as the node's process does. */
export type Run = <A, E>(
  effect: Effect.Effect<A, E>,
) => {
  readonly addObserver: (observe: (exit: Exit.Exit<A, E>) => void) => unknown;
};
