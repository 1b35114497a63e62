/**
 * What the operator sees of the whole installation, over all accounts: one of the store's ports, see journal.ts. It reads
 * only, and each read is bounded.
 */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";

export interface DatabaseFacts {
  /** As the server names it. */
  readonly version: string;
  readonly sizeBytes: number;
  readonly connections: number;
  readonly connectionsMax: number;
}

export interface Backlog {
  readonly waiting: number;
  /** Null if nothing waits, or the store keeps no instants. */
  readonly oldestAt: number | null;
}

/** How long a step took, ms: the median, and what 95 % stayed below. */
export interface Spread {
  readonly count: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

export interface Boots {
  readonly started: number;
  /** By the failure's code, most frequent first. */
  readonly failures: readonly { readonly code: string; readonly count: number }[];
  /** From the sandbox's record to its place to boot. Null if none got one. */
  readonly waited: Spread | null;
  /** From the place to a daemon that is ready. Null if none was. */
  readonly booted: Spread | null;
}

/** What the metrics show of the installation. Instants are null if nothing waits, or if the store keeps none. */
export interface Watch {
  /** Sessions that have a slot, by status. */
  readonly sessions: ReadonlyMap<"provisioning" | "running", number>;
  /** Sessions that keep their slot because their work cannot be saved. */
  readonly unsaved: number;
  readonly oldestFireAt: number | null;
  /** Without commands that last as long as a sandbox, such as watching it. */
  readonly oldestCommandAt: number | null;
  readonly oldestDeliveryAt: number | null;
  /** Of a live session's agent, to a person. */
  readonly oldestRequestAt: number | null;
}

/** How many of the newest boots are looked at. */
export const BOOTS_LOOKED_AT = 1000;

export class Operations extends Context.Service<
  Operations,
  {
    readonly database: Stored<DatabaseFacts>;
    /** Fires that wait for a slot, and commands that an actor has not performed yet, without those that last as long as a sandbox. */
    readonly backlogs: Stored<{ readonly fires: Backlog; readonly commands: Backlog }>;
    /** In one read. */
    readonly watch: Stored<Watch>;
    /** The newest boots, at most BOOTS_LOOKED_AT, that began at or after the instant. */
    readonly boots: (since: number) => Stored<Boots>;
    /** Sandboxes that are provisioning or active, by node. Nodes without one have no entry. */
    readonly sandboxesByNode: Stored<ReadonlyMap<string, number>>;
    /** The account that the first start created. Null before it. */
    readonly operatorAccount: Stored<string | null>;
  }
>()("platform/store/Operations") {}
