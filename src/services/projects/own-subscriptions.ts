/** What the core asks of people's own subscriptions (domain/agents/subscription.ts). The feature `subscriptions` answers. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type { Stored, StoreError } from "../../store/ports/journal.ts";

/** A session whose sandbox starts. */
export interface StartingSession {
  readonly id: string;
  readonly accountId: string;
  readonly origin: "session" | "trigger";
  readonly createdBy: string;
}

/** A sandbox that does not answer may still have the subscription. */
export class SubscriptionStays extends Schema.TaggedError<SubscriptionStays>()("SubscriptionStays", {}) {}

export interface OwnSubscriptionsPort {
  /** The runtimes for which a person keeps one. Null means no person's work. */
  readonly kept: (accountId: string, personId: string | null) => Stored<readonly string[]>;
  /** What a sandbox gets. It is noted before. Null if its person keeps none, or another one steers the session. */
  readonly deliver: (
    session: StartingSession,
    to: { readonly sandboxId: string; readonly runtime: string },
  ) => Stored<string | null>;
  /**
   * Takes it from the running sandboxes of a session, and of those that its agent started. When it returns, none has it.
   *
   * @param reason a sentence for their conversations
   */
  readonly withdraw: (
    sessionId: string,
    reason: string,
  ) => Effect.Effect<void, StoreError | SubscriptionStays>;
  /** Whether a running sandbox of the session has one. */
  readonly isInside: (sessionId: string) => Stored<boolean>;
  /** What of a person's must not be shown to others. */
  readonly secrets: (accountId: string, personId: string) => Stored<readonly string[]>;
}

export const OwnSubscriptions = Context.Reference<OwnSubscriptionsPort>(
  "platform/services/OwnSubscriptions",
  {
    defaultValue: () => ({
      kept: () => Effect.succeed([]),
      deliver: () => Effect.succeed(null),
      withdraw: () => Effect.void,
      isInside: () => Effect.succeed(false),
      secrets: () => Effect.succeed([]),
    }),
  },
);
