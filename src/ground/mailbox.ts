/** What an actor answers to an event, and why it takes none. The host answers so (actors/host.ts), in the service and in the daemon. */
import * as Schema from "effect/Schema";

/** The actor's mailbox is full. The caller should try again later. */
export class MailboxFull extends Schema.TaggedError<MailboxFull>()("MailboxFull", {
  actorId: Schema.String,
  capacity: Schema.Finite,
}) {}

/** Actor not found: its memory holds nothing under this id. */
export class ActorNotFound extends Schema.TaggedError<ActorNotFound>()("ActorNotFound", {
  actorId: Schema.String,
}) {}

/** The result of an event, answered after the commit. */
export interface EventResult<S> {
  readonly accepted: boolean;
  readonly snapshot: S;
}
