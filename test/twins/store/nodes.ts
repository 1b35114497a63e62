/** Nodes in memory: see postgres/nodes.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Nodes, type NodeRecord } from "../../../src/store/ports/nodes.ts";
import { Tables } from "./tables.ts";

export const layer = Layer.effect(
  Nodes,
  Effect.map(Tables, (tables) => {
    const nodes = new Map<string, NodeRecord>();
    return {
      beat: ({ id, url }) =>
        Effect.sync(() => {
          nodes.set(id, { id, url, beats: (nodes.get(id)?.beats ?? 0) + 1, deadAt: null });
        }),
      all: Effect.sync(() => [...nodes.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))),
      bury: ({ id, beats, now }) =>
        Effect.sync(() => {
          const node = nodes.get(id);
          if (node?.beats !== beats || node.deadAt !== null) return false;
          nodes.set(id, { ...node, deadAt: now });
          return true;
        }),
      ownerNode: (projectId) => Effect.sync(() => tables.projects.get(projectId)?.nodeId ?? null),
      adopt: (nodeId, projectIds) =>
        Effect.sync(() => {
          for (const id of projectIds) {
            const row = tables.projects.get(id);
            if (row !== undefined && row.nodeId === null) tables.projects.set(id, { ...row, nodeId });
          }
        }),
    };
  }),
);
