/** The nodes that share this database (api.md 10): one of the store's ports, see journal.ts. */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";

export interface NodeRecord {
  readonly id: string;
  /** Its API port as other nodes reach it; null: it was never seen. */
  readonly url: string | null;
  /** Rises with each sign of life. */
  readonly beats: number;
  /** Since when it counts as dead; null: it does not. */
  readonly deadAt: number | null;
}

export class Nodes extends Context.Service<
  Nodes,
  {
    /** A sign of life: the node is at this address, and is not dead (any more). */
    readonly beat: (node: {
      readonly id: string;
      readonly url: string;
      readonly now: number;
    }) => Stored<void>;
    readonly all: Stored<readonly NodeRecord[]>;
    /** Declares a node dead that gave no sign of life since `beats`. @returns false where it did: nothing was written. */
    readonly bury: (node: {
      readonly id: string;
      readonly beats: number;
      readonly now: number;
    }) => Stored<boolean>;
    /** The node that has a project's hosted repository; null: no node in particular. */
    readonly ownerOf: (projectId: string) => Stored<string | null>;
    /** Gives those of these projects to the node that belong to none: hosted repositories from before there were nodes. */
    readonly adopt: (nodeId: string, projectIds: readonly string[]) => Stored<void>;
  }
>()("platform/store/Nodes") {}
