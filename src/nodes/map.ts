/**
 * The nodes of the installation: which exist, where they are, and which are dead. This node learns it from the table to
 * which all nodes write.
 *
 *  O1 Silence is counted in looks at the table, and only successful looks count. So a clock that steps, an observer
 *     that stood still, or a database outage cannot make a living node look silent.
 *  O2 A node is declared dead only for the heartbeat count that was last seen. If it sends a heartbeat meanwhile, the
 *     declaration fails.
 *  O3 The table says which nodes are dead, for all nodes alike, until the dead node's own next heartbeat.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { BoundedMap } from "../ground/bounded-map.ts";
import { DUTIES } from "../services/duties.ts";
import { dutyRound, runDuty } from "../services/duty.ts";
import type { Stored } from "../store/ports/journal.ts";
import { Nodes, type NodeRecord } from "../store/ports/nodes.ts";

/** After this many looks without a heartbeat, a node is no longer called. */
const AWAY_LOOKS = 5;
/** After this many, calls to it that are under way end, too. A node that only had a busy moment still answers them. */
const SILENT_LOOKS = 15;

/** The place of a sandbox or a repository that belongs to a node. */
export type Place =
  | { readonly is: "here" }
  | { readonly is: "there"; readonly nodeId: string; readonly url: string }
  /** The node is unreachable now. */
  | { readonly is: "away"; readonly nodeId: string }
  /** The node was silent for PLATFORM_NODE_GRACE_MS: its sandboxes are lost. */
  | { readonly is: "dead"; readonly nodeId: string };

export class NodeMap extends Context.Service<
  NodeMap,
  {
    /** This node. */
    readonly self: string;
    readonly place: (nodeId: string) => Place;
    /** Whether a call to the node has no answer to wait for. */
    readonly isSilent: (nodeId: string) => boolean;
    /** The other nodes that are not dead, as the last look found them. */
    readonly others: () => readonly string[];
    /** The node that has a project's repository. This node if no record names one. */
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

  /** Records one look. */
  look(nodes: readonly NodeRecord[]): void {
    for (const { id, beats } of nodes) {
      const former = this.#seen.get(id);
      this.#seen.set(id, { beats, looks: former?.beats === beats ? former.looks + 1 : 0 });
    }
  }

  looks(nodeId: string): number {
    return this.#seen.get(nodeId)?.looks ?? 0;
  }
}

/** How many projects' owners are remembered. An owner never changes, so one read is enough. */
const REMEMBERED = 10_000;

/** @returns a function that caches non-null answers. The oldest ones make room. */
export const remembering = <A, E>(read: (id: string) => Effect.Effect<A | null, E>) => {
  const cache = new BoundedMap<string, A>(REMEMBERED);
  return (id: string): Effect.Effect<A | null, E> =>
    Effect.suspend(() => {
      const cached = cache.get(id);
      if (cached !== undefined) return Effect.succeed(cached);
      return Effect.tap(read(id), (answer) =>
        Effect.sync(() => {
          if (answer !== null) cache.set(id, answer);
        }),
      );
    });
};

/** Sends heartbeats and looks at the others', starting with one of each before the layer is ready. */
export const nodeMapLayer = ({ nodeId, url, graceMs }: MapOptions) =>
  Layer.effect(
    NodeMap,
    Effect.gen(function* () {
      const { beat, all, bury, ownerNode } = yield* Nodes;
      const silence = new Silence();
      let records = new Map<string, NodeRecord>();
      const deadAfter = Math.ceil(graceMs / DUTIES.nodes.periodMs);

      const look = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis;
        yield* beat({ id: nodeId, url, now });
        const nodes = yield* all;
        silence.look(nodes);
        records = new Map(nodes.map((node) => [node.id, node]));
        for (const { id, beats, deadAt } of nodes) {
          if (id === nodeId || deadAt !== null || silence.looks(id) < deadAfter) continue;
          if (!(yield* bury({ id, beats, now }))) continue;
          yield* Effect.logError(
            "a node does not respond and counts as dead; its sandboxes and sessions are lost",
            { node: id },
          );
        }
      });
      yield* dutyRound("nodes", look);
      yield* runDuty("nodes", { round: look, first: "a period", periodMs: DUTIES.nodes.periodMs });

      const nodePlace = (id: string): Place => {
        if (id === nodeId) return { is: "here" };
        const node = records.get(id);
        // An unknown node started after the last look.
        if (node === undefined) return { is: "away", nodeId: id };
        if (node.deadAt !== null) return { is: "dead", nodeId: id };
        if (node.url === null || silence.looks(id) >= AWAY_LOOKS) return { is: "away", nodeId: id };
        return { is: "there", nodeId: id, url: node.url };
      };
      const owner = remembering(ownerNode);
      return NodeMap.of({
        self: nodeId,
        place: nodePlace,
        isSilent: (id) => nodePlace(id).is === "dead" || silence.looks(id) >= SILENT_LOOKS,
        others: () => [...records.keys()].filter((id) => !["here", "dead"].includes(nodePlace(id).is)),
        repositoryPlace: (projectId) => Effect.map(owner(projectId), (id) => nodePlace(id ?? nodeId)),
      });
    }),
  );
