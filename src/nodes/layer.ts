/** Connects a node with the others: its provider and its repositories become available to all nodes. */
import * as Layer from "effect/Layer";
import { nodeBuilding } from "./building.ts";
import { localParts } from "./local.ts";
import { nodeMapLayer, type MapOptions } from "./map.ts";
import { nodeRepositories } from "./repositories.ts";
import { nodeSandboxes } from "./sandboxes.ts";

/** The dispatching provider and backend, with the parts that the endpoint needs (endpoint.ts). */
export const nodeLayers = (options: MapOptions) =>
  Layer.mergeAll(nodeSandboxes, nodeRepositories, nodeBuilding).pipe(
    Layer.provideMerge(Layer.mergeAll(localParts, nodeMapLayer(options))),
  );
