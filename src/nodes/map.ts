/**
 * Which nodes there are, where, and which are dead: what this node knows of the others, from the table they all write to.
 *
 *  O1 Silence is counted in looks, each of which saw the table: neither a clock that steps, nor a judge that stood still,
 *     nor a database that was away makes a living node look silent.
 *  O2 A node is declared dead at the count of beats that was last seen: one that gives a sign of life meanwhile is not.
 *  O3 Dead is what the table says, to every node alike, until the node's own next sign of life.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { dutyRound } from "../actors/supervisor.ts";
import type { Stored } from "../store/ports/journal.ts";
import { Nodes, type NodeRecord } from "../store/ports/nodes.ts";

/** Between two signs of life, and two looks at the others', ms. */
const BEAT_MS = 1000;
/** Looks without a sign of life after which a node is not asked any more. */
const AWAY_LOOKS = 5;

/** Where something is that belongs to a node. */
export type Place =
  | { readonly is: "here" }
  | { readonly is: "there"; readonly nodeId: string; readonly url: string }
  /** It cannot be asked now. */
  | { readonly is: "away" }
  /** Silent for PLATFORM_NODE_GRACE_MS: what it had is lost. */
  | { readonly is: "dead" };

export class NodeMap extends Context.Service<
  NodeMap,
  {
    /** This node. */
    readonly self: string;
    readonly placeOf: (nodeId: string) => Place;
    /** The node that has a project's repository; its own where it belongs to none. */
    readonly repositoryPlace: (projectId: string) => Stored<Place>;
  }
>()("platform/nodes/NodeMap") {}

export interface MapOptions {
  readonly nodeId: string;
  /** This node's API port, as the others reach it. */
  readonly url: string;
  /** PLATFORM_NODE_GRACE_MS. */
  readonly graceMs: number;
}

/** How long each node has been silent, in looks. */
export class Silence {
  readonly #seen = new Map<string, { readonly beats: number; readonly looks: number }>();

  /** Takes a look. */
  look(nodes: readonly NodeRecord[]): void {
    for (const { id, beats } of nodes) {
      const former = this.#seen.get(id);
      this.#seen.set(id, { beats, looks: former?.beats === beats ? former.looks + 1 : 0 });
    }
  }

  of(nodeId: string): number {
    return this.#seen.get(nodeId)?.looks ?? 0;
  }
}

/** Owners never change once there is one: what was read once is remembered, for so many projects. */
const REMEMBERED = 10_000;

/** @returns what remembers non-null answers, the oldest of which make room. */
export const remembering = <A, E>(read: (id: string) => Effect.Effect<A | null, E>) => {
  const known = new Map<string, A>();
  return (id: string): Effect.Effect<A | null, E> =>
    Effect.suspend(() => {
      const found = known.get(id);
      if (found !== undefined) return Effect.succeed(found);
      return Effect.tap(read(id), (answer) =>
        Effect.sync(() => {
          if (answer === null) return;
          const [oldest] = known.keys();
          if (known.size >= REMEMBERED && oldest !== undefined) known.delete(oldest);
          known.set(id, answer);
        }),
      );
    });
};

/** Gives signs of life and looks for the others', from the first one on that its start waits for. */
export const nodeMapLayer = ({ nodeId, url, graceMs }: MapOptions) =>
  Layer.effect(
    NodeMap,
    Effect.gen(function* () {
      const { beat, all, bury, ownerOf } = yield* Nodes;
      const silence = new Silence();
      let known = new Map<string, NodeRecord>();
      const deadAfter = Math.ceil(graceMs / BEAT_MS);

      const look = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis;
        yield* beat({ id: nodeId, url, now });
        const nodes = yield* all;
        silence.look(nodes);
        known = new Map(nodes.map((node) => [node.id, node]));
        for (const { id, beats, deadAt } of nodes) {
          if (id === nodeId || deadAt !== null || silence.of(id) < deadAfter) continue;
          if (!(yield* bury({ id, beats, now }))) continue;
          yield* Effect.logError(
            "a node does not respond and counts as dead; its sandboxes and sessions are lost",
            { node: id },
          );
        }
      });
      const round = dutyRound("nodes", look);
      yield* round;
      yield* Effect.forkScoped(Effect.repeat(Effect.delay(round, BEAT_MS), Schedule.forever));

      const placeOf = (id: string): Place => {
        if (id === nodeId) return { is: "here" };
        const node = known.get(id);
        // One that is not known began after the last look.
        if (node === undefined) return { is: "away" };
        if (node.deadAt !== null) return { is: "dead" };
        if (node.url === null || silence.of(id) >= AWAY_LOOKS) return { is: "away" };
        return { is: "there", nodeId: id, url: node.url };
      };
      const owner = remembering(ownerOf);
      return NodeMap.of({
        self: nodeId,
        placeOf,
        repositoryPlace: (projectId) => Effect.map(owner(projectId), (id) => placeOf(id ?? nodeId)),
      });
    }),
  );
