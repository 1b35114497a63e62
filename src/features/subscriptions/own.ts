/**
 * The answers to what the core asks of people's own subscriptions (services/projects/own-subscriptions.ts).
 *
 *  W1 That a sandbox gets one is noted first, and only then it is asked who steers. A suspension is noted first, and only then it is asked
 *     which sandboxes have one. So one of the two always sees the other.
 *  W2 The note ends when the sandbox has said that it is without the subscription, or with the sandbox.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import { subscriptionSecrets } from "../../domain/agents/subscription.ts";
import { DaemonClient } from "../../sandbox/daemon.ts";
import { SandboxProvider } from "../../sandbox/port.ts";
import { withLink } from "../../services/answered.ts";
import { credentialOwner } from "../../services/connectors/own-credentials.ts";
import { Keyring } from "../../services/keyring.ts";
import {
  OwnSubscriptions,
  SubscriptionStays,
  type OwnSubscriptionsPort,
} from "../../services/projects/own-subscriptions.ts";
import { serviceContext } from "../../services/sessions/service-context.ts";
import type { Suspensions } from "../../store/ports/connectors/suspensions.ts";
import { type Holder, Subscriptions } from "./ports/subscriptions.ts";
import { openContent } from "./sealing.ts";

/** @returns a function that takes the subscription from these sandboxes. It fails if one of them may still have it. */
export const makeWithdrawal = Effect.gen(function* () {
  const { forgetDelivery } = yield* Subscriptions;
  const daemon = yield* DaemonClient;
  const provider = yield* SandboxProvider;
  const sign = yield* serviceContext;
  const from = (reason: string) =>
    Effect.fnUntraced(function* ({ sandboxId, sessionId }: Holder) {
      const link = yield* withLink(provider, sandboxId);
      yield* daemon.withdraw(link, yield* sign(sandboxId, sessionId), reason);
      yield* forgetDelivery(sandboxId);
    });
  return (holders: readonly Holder[], reason: string) =>
    Effect.forEach(holders, from(reason), { concurrency: "unbounded", discard: true }).pipe(
      Effect.catchTags({
        SandboxError: () => new SubscriptionStays(),
        DaemonUnreachable: () => new SubscriptionStays(),
      }),
    );
});

export const ownSubscriptionsLayer = Layer.effect(
  OwnSubscriptions,
  Effect.gen(function* () {
    const rows = yield* Subscriptions;
    const keyring = yield* Keyring;
    const withdrawFrom = yield* makeWithdrawal;
    const services = yield* Effect.context<Suspensions>();

    const deliver = Effect.fnUntraced(function* (...args: Parameters<OwnSubscriptionsPort["deliver"]>) {
      const [{ accountId, ...session }, { sandboxId, runtime }] = args;
      const own = yield* rows.list({ accountId, userId: session.createdBy });
      const one = own.find((row) => row.runtime === runtime);
      if (one === undefined) return null;
      const note = yield* rows.deliver(sandboxId, one, yield* Clock.currentTimeMillis);
      if (note === "gone") return null;
      const personId = yield* Effect.provideContext(credentialOwner(session), services);
      const content = openContent(keyring, one);
      if (personId !== null && Result.isSuccess(content)) return content.success;
      if (personId !== null) yield* Effect.logWarning("a subscription cannot be opened with this master key");
      // A boot that is performed again may join a sandbox that has it.
      if (note === "new") yield* rows.forgetDelivery(sandboxId);
      return null;
    });

    return {
      kept: (accountId, personId) =>
        personId === null
          ? Effect.succeed([])
          : Effect.map(rows.list({ accountId, userId: personId }), (own) =>
              own.map(({ runtime }) => runtime),
            ),
      deliver,
      withdraw: (sessionId, reason) =>
        Effect.flatMap(rows.holdersBelow(sessionId), (holders) => withdrawFrom(holders, reason)),
      isInside: (sessionId) =>
        Effect.map(rows.holdersBelow(sessionId), (holders) =>
          holders.some((holder) => holder.sessionId === sessionId),
        ),
      secrets: (accountId, userId) =>
        Effect.map(rows.list({ accountId, userId }), (own) =>
          own.flatMap((one) =>
            Result.match(openContent(keyring, one), {
              onFailure: () => [],
              onSuccess: subscriptionSecrets,
            }),
          ),
        ),
    } satisfies OwnSubscriptionsPort;
  }),
);
