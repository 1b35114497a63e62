/**
 * The address book: how anyone tells an actor something, wherever it lives. The adapter is actors/cluster.ts.
 *
 * Messages are volatile. What must not be lost stands in the outbox, which the actor reads when it starts.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type { AccountEvent, AccountSnapshot } from "../machines/account.ts";
import type { ChangeRequestEvent, ChangeRequestSnapshot } from "../machines/change-request.ts";
import type { SandboxEvent, SandboxSnapshot } from "../machines/sandbox.ts";
import type { SessionEvent, SessionSnapshot } from "../machines/session.ts";
import type { TriggerEvent, TriggerSnapshot } from "../machines/trigger.ts";
import type { CapReached, StoreError } from "../store/ports/journal.ts";
import type { ActorNotFound, MailboxFull, Told } from "./host.ts";

/** The actor's runner cannot be reached now: nothing is known to have happened. Callers answer 503. */
export class ActorUnavailable extends Schema.TaggedError<ActorUnavailable>()("ActorUnavailable", {
  actorId: Schema.String,
  reason: Schema.String,
}) {}

export type TellError = StoreError | CapReached | MailboxFull | ActorNotFound | ActorUnavailable;
type Tell<S, Event> = (id: string, event: Event) => Effect.Effect<Told<S>, TellError>;

export interface ActorKinds {
  readonly session: { readonly snapshot: SessionSnapshot; readonly event: SessionEvent };
  readonly sandbox: { readonly snapshot: SandboxSnapshot; readonly event: SandboxEvent };
  readonly account: { readonly snapshot: AccountSnapshot; readonly event: AccountEvent };
  readonly trigger: { readonly snapshot: TriggerSnapshot; readonly event: TriggerEvent };
  readonly changeRequest: { readonly snapshot: ChangeRequestSnapshot; readonly event: ChangeRequestEvent };
}
export type ActorKind = keyof ActorKinds;

export class Actors extends Context.Service<
  Actors,
  {
    readonly session: Tell<SessionSnapshot, SessionEvent>;
    readonly sandbox: Tell<SandboxSnapshot, SandboxEvent>;
    readonly account: Tell<AccountSnapshot, AccountEvent>;
    readonly trigger: Tell<TriggerSnapshot, TriggerEvent>;
    readonly changeRequest: Tell<ChangeRequestSnapshot, ChangeRequestEvent>;
    /** Has the actor loaded and at work on what its outbox holds; returns at once. A lost wake is covered by recovery. */
    readonly wake: (kind: ActorKind, id: string) => Effect.Effect<void>;
    /** The same, and waits until it is loaded. True: it had to be loaded. Whatever hinders it is logged, and is false. */
    readonly load: (kind: ActorKind, id: string) => Effect.Effect<boolean>;
  }
>()("platform/actors/Actors") {}

/** Which actors live on this node, as far as it knows. Two nodes may believe so at once, and for a moment none may. */
export class Placement extends Context.Service<
  Placement,
  {
    /** Whether the trigger's actor lives here. */
    readonly isHere: (triggerId: string) => boolean;
    /** Completes when actors have moved to this node or away from it since it was asked last; for one waiter. */
    readonly moves: Effect.Effect<void>;
  }
>()("platform/actors/Placement") {}
