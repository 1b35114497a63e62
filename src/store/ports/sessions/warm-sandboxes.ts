/**
 * Sandboxes that wait for a session.
 *
 *  W1 A sandbox is claimed once, by one session. The same session claims it again with the same answer, until it has taken it.
 *     Afterwards it gets none while that row is left: it may have been stopped before its boot, and the end of that sandbox
 *     would come after the restart.
 *  W2 A project never has more unclaimed ones on a node than a call of `add` allows.
 *  W3 A claimed one is never removed here: `Sandboxes.open` takes its row over, or `abandoned` names it.
 */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";
import type { GivenSecrets } from "./sandboxes.ts";

/** A session uses a sandbox within milliseconds of its claim, unless its node dies in between. */
export const ABANDONED_MS = 60_000;

/** The project's manifest, a person who is about to start a session, or a cron trigger that fires soon. */
export type WantedBy = "manifest" | "person" | "trigger";

export interface WarmSandbox {
  readonly id: string;
  readonly projectId: string;
  readonly nodeId: string;
  /** A digest of everything that it was started with. Null if it is not ready yet. */
  readonly recipe: string | null;
  readonly wantedBy: WantedBy;
  /** Null means as long as the manifest asks for it. */
  readonly wantedUntil: number | null;
  readonly createdAt: number;
}

export interface NewWarmSandbox extends Omit<WarmSandbox, "recipe"> {
  /** How many unclaimed ones the project may have on the node, with this one. */
  readonly atMost: number;
}

export class WarmSandboxes extends Context.Service<
  WarmSandboxes,
  {
    /** False: the project has as many as it may, or does not exist. */
    readonly add: (sandbox: NewWarmSandbox) => Stored<boolean>;
    /** It can be claimed from now on. False: it was removed. */
    readonly ready: (
      id: string,
      preparation: { readonly recipe: string; readonly secrets: GivenSecrets },
    ) => Stored<boolean>;
    /** Gives the session one of the node that is ready, the oldest first. Null if none is ready, or see W1. */
    readonly claim: (request: {
      readonly projectId: string;
      readonly sessionId: string;
      readonly nodeId: string;
      /** A trigger's session leaves those to people that a person asked for. */
      readonly isPersons: boolean;
      readonly now: number;
    }) => Stored<string | null>;
    /** The unclaimed ones of a node, oldest first. */
    readonly unclaimed: (nodeId: string) => Stored<readonly WarmSandbox[]>;
    /** How many of a project are ready, on all nodes, and how many of these wait for a trigger. */
    readonly countReady: (
      projectId: string,
    ) => Stored<{ readonly ready: number; readonly forTriggers: number }>;
    /** An unclaimed one of the project stays at least until then. False: it has none on the node. */
    readonly keep: (request: {
      readonly projectId: string;
      readonly nodeId: string;
      readonly until: number;
    }) => Stored<boolean>;
    /** Removes an unclaimed one. False: it is claimed, or gone. */
    readonly remove: (id: string) => Stored<boolean>;
    /**
     * Removes those of a node whose session did not use them `ABANDONED_MS` after its claim. A claim that lies as far ahead is from
     * before the node's clock was set back.
     *
     * @returns their ids
     */
    readonly abandoned: (nodeId: string, now: number) => Stored<readonly string[]>;
  }
>()("platform/store/WarmSandboxes") {}
