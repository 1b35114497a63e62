/**
 * The history of actors, and the commands that they wait for. It is one of the store's ports, with the same adapters
 * (journal.ts).
 *
 * A stored actor's rows are written by the transaction that saves the step (journal.ts D2), or that creates the actor.
 * They are read here. Steps that change nothing leave no row.
 */
import * as Context from "effect/Context";
import type { NewTransition } from "../../machines/transition.ts";
import type { BadCursor } from "./errors.ts";
import type { Stored } from "./journal.ts";
import type { Page, PageRequest } from "./page.ts";

/** How many transitions of an actor are kept, and how long, ms. */
export const TRANSITIONS_KEPT = 200;
export const TRANSITIONS_KEPT_MS = 90 * 24 * 60 * 60 * 1000;
/** Kinds of actors whose snapshot is stored, and those that start from other records each time. */
export type StoredKind = "session" | "sandbox" | "conversation" | "change_request" | "environment_build";
export type VolatileKind = "trigger" | "account";

export interface ActorKey {
  readonly kind: StoredKind | VolatileKind;
  readonly id: string;
}

export interface Transition extends NewTransition {
  /** Rises with each transition of the actor, with gaps. */
  readonly number: number;
  /** When the actor entered the state `from`, ms. Null if not known any more. */
  readonly enteredAt: number | null;
}

/** A transition with its actor. */
export interface ActorTransition extends NewTransition {
  readonly actor: ActorKey;
}

/** A command that is not known to be done. */
export interface WaitingCommand {
  readonly command: string;
  readonly since: number;
  /** How often its handler crashed. */
  readonly attempts: number;
  readonly lastError: string | null;
}

export interface HistoryLimits {
  readonly before: number;
  readonly kept: number;
  readonly movedSince: number;
}

export class Transitions extends Context.Service<
  Transitions,
  {
    /** Newest first. */
    readonly list: (actor: ActorKey, request: PageRequest) => Stored<Page<Transition>, BadCursor>;
    /** The state that the newest transition led to, and when the actor entered it. Null if no row is left. */
    readonly newest: (
      actor: ActorKey,
    ) => Stored<{ readonly last: NewTransition; readonly since: number | null } | null>;
    /** The newest rows of all actors, not older than an instant. Oldest first. */
    readonly recent: (page: {
      readonly since: number;
      readonly limit: number;
    }) => Stored<readonly ActorTransition[]>;
    /** Oldest first. Always empty for triggers and accounts. */
    readonly waiting: (actor: ActorKey) => Stored<readonly WaitingCommand[]>;
    /** Adds transitions of actors without a stored snapshot, each actor's in order. */
    readonly add: (
      rows: readonly (NewTransition & {
        readonly actor: { readonly kind: VolatileKind; readonly id: string };
      })[],
    ) => Stored<void>;
    /**
     * One small step: removes rows from before an instant. Of actors that moved since another one, it removes all but
     * the newest `kept` rows.
     * @returns how many. 0: nothing is left to remove.
     */
    readonly prune: (limits: HistoryLimits) => Stored<number>;
  }
>()("platform/store/Transitions") {}
