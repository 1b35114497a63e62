/**
 * The audit record: who did what. One of the store's ports, see journal.ts.
 *
 *  A1 `recorded` writes the row and the change in one transaction: both are kept, or both are undone.
 *  A2 A row is never changed. It goes when it is older than the retention.
 *  A3 No row has a secret, a code, a token or the text of a message. The callers choose what a row has.
 *  A4 A row outlives what it names, so it has the actor's name, and refers to nothing.
 *  A5 A row without an account belongs to the account of its person, and gets her name if it has none. A row without a
 *     person concerns the whole service, and belongs to the operator's account, the first one.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { ActorKind, AuditAction, AuditChanges, AuditOutcome } from "../../domain/person/audit.ts";
import type { BadCursor } from "./errors.ts";
import type { Stored, StoreError } from "./journal.ts";
import type { Page, PageRequest } from "./page.ts";

export interface AuditActor {
  readonly kind: ActorKind;
  /** The person's id, or the session's of an agent. Null if the kind says all. */
  readonly id: string | null;
  readonly name: string | null;
  /** The token or the signed-in browser. */
  readonly tokenId: string | null;
}

export interface NewAuditEvent {
  readonly id: string;
  readonly at: number;
  /** On null, see A5. */
  readonly accountId: string | null;
  readonly projectId: string | null;
  readonly actor: AuditActor;
  readonly action: AuditAction;
  /** The id or the name of what changed. */
  readonly target: string | null;
  readonly outcome: AuditOutcome;
  /** The client's, as this node saw it. */
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
  readonly changes: AuditChanges;
}

/** `accountId` is null only if the service had no account yet. */
export type AuditEvent = NewAuditEvent;

export interface AuditRequest extends PageRequest {
  readonly accountId: string;
  readonly projectId: string | null;
  readonly actorId: string | null;
  readonly action: AuditAction | null;
  /** From this instant on, ms. */
  readonly since: number | null;
  /** Before this instant, ms. */
  readonly until: number | null;
}

export class Audit extends Context.Service<
  Audit,
  {
    /**
     * Performs a change with its row (A1). The operations of other ports within `change` become part of one transaction.
     *
     * @param eventOf the row of the change's result. Null if nothing changed, and there is no row.
     */
    readonly recorded: <A, E, R>(
      change: Effect.Effect<A, E, R>,
      eventOf: (result: A) => NewAuditEvent | null,
    ) => Effect.Effect<A, E | StoreError, R>;
    /**
     * For a change that replaces values, within `recorded`: waits until no other recorded change of this target is under way, so that what is
     * read next is what the change replaces.
     */
    readonly alone: (target: string) => Stored<void>;
    /** Writes a row of its own: for what another transaction changes, or what nothing changes. */
    readonly append: (event: NewAuditEvent) => Stored<void>;
    /** Newest first. */
    readonly list: (request: AuditRequest) => Stored<Page<AuditEvent>, BadCursor>;
    /** One small step: removes rows from before an instant. @returns how many. 0: nothing is left to remove. */
    readonly prune: (before: number) => Stored<number>;
  }
>()("platform/store/Audit") {}
