/**
 * The address book: sends events to any actor, on any node. The adapter is actors/cluster.ts.
 *
 * Messages are volatile. Anything that must survive a crash is in the outbox, which the actor reads when it starts.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type { AccountEvent, AccountSnapshot } from "../machines/account.ts";
import type { ChangeRequestEvent, ChangeRequestSnapshot } from "../machines/change-request.ts";
import type { ConversationSnapshot } from "../machines/conversation.ts";
import type { ConversationEvent } from "../machines/conversation-events.ts";
import type { EnvironmentBuildEvent, EnvironmentBuildSnapshot } from "../machines/environment-build.ts";
import type { SandboxEvent, SandboxSnapshot } from "../machines/sandbox.ts";
import type { SessionEvent, SessionSnapshot } from "../machines/session.ts";
import type { TriggerEvent, TriggerSnapshot } from "../machines/trigger.ts";
import type { CapReached, StoreError, UnsettledActor } from "../store/ports/journal.ts";
import type { ActorNotFound, MailboxFull, EventResult } from "../ground/mailbox.ts";

/** The actor's runner is unreachable. The event may or may not have been handled. Callers answer 503. */
export class ActorUnavailable extends Schema.TaggedError<ActorUnavailable>()("ActorUnavailable", {
  actorId: Schema.String,
  reason: Schema.String,
}) {}

export type TellError = StoreError | CapReached | MailboxFull | ActorNotFound | ActorUnavailable;
type Tell<S, Event> = (id: string, event: Event) => Effect.Effect<EventResult<S>, TellError>;

export interface ActorKinds {
  readonly session: { readonly snapshot: SessionSnapshot; readonly event: SessionEvent };
  readonly sandbox: { readonly snapshot: SandboxSnapshot; readonly event: SandboxEvent };
  readonly account: { readonly snapshot: AccountSnapshot; readonly event: AccountEvent };
  readonly trigger: { readonly snapshot: TriggerSnapshot; readonly event: TriggerEvent };
  readonly changeRequest: { readonly snapshot: ChangeRequestSnapshot; readonly event: ChangeRequestEvent };
  readonly conversation: { readonly snapshot: ConversationSnapshot; readonly event: ConversationEvent };
  readonly environmentBuild: {
    readonly snapshot: EnvironmentBuildSnapshot;
    readonly event: EnvironmentBuildEvent;
  };
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
    /** The conversation of the session with that id. */
    readonly conversation: Tell<ConversationSnapshot, ConversationEvent>;
    readonly environmentBuild: Tell<EnvironmentBuildSnapshot, EnvironmentBuildEvent>;
    /** Loads the actor so that it works off its outbox. Returns at once. Recovery makes up for a lost wake. */
    readonly wake: (kind: ActorKind, id: string) => Effect.Effect<void>;
    /**
     * As `wake`, but waits until the actor is loaded. An actor that does not know the newest command reads its memory
     * again. True if it was not loaded before. A failure is logged and gives false.
     */
    readonly load: (kind: ActorKind, actor: UnsettledActor) => Effect.Effect<boolean>;
  }
>()("platform/services/Actors") {}

/** The actors that live on this node, as far as it knows. For a moment two nodes, or no node, may claim an actor. */
export class Placement extends Context.Service<
  Placement,
  {
    /** Whether the trigger's actor lives here. */
    readonly isHere: (triggerId: string) => boolean;
    /** Completes when actors have moved to or from this node since the last call. Supports one waiter. */
    readonly moves: Effect.Effect<void>;
  }
>()("platform/services/Placement") {}
