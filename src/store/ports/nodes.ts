/** The nodes that share this database (api.md 10): one of the store's ports, see journal.ts. */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";

export interface NodeRecord {
  readonly id: string;
  /** Its API port as other nodes reach it. Null if it was never seen. */
  readonly url: string | null;
  /** Rises with each heartbeat. */
  readonly beats: number;
  /** When the node was declared dead. Null if it is not dead. */
  readonly deadAt: number | null;
}

export class Nodes extends Context.Service<
  Nodes,
  {
    /** A heartbeat: the node is at this address, and is no longer dead. */
    readonly beat: (node: {
      readonly id: string;
      readonly url: string;
      readonly now: number;
    }) => Stored<void>;
    readonly all: Stored<readonly NodeRecord[]>;
    /** Declares a node dead if it sent no heartbeat since `beats`. @returns false if it did: nothing was written. */
    readonly bury: (node: {
      readonly id: string;
      readonly beats: number;
      readonly now: number;
    }) => Stored<boolean>;
    /** The node that has a project's hosted repository. Null if not recorded. */
    readonly ownerNode: (projectId: string) => Stored<string | null>;
    /** Assigns to the node those projects that have none: hosted repositories from before there were nodes. */
    readonly adopt: (nodeId: string, projectIds: readonly string[]) => Stored<void>;
  }
>()("platform/store/Nodes") {}
