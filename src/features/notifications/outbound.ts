/**
 * Sends an event's message to a receiver: opens its sealed address and secrets, signs, sends, and counts the outcomes of this
 * process.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import type { OutboundMessage } from "./rules/outbound-event.ts";
import { formattedBody, type OutboundFormat } from "./rules/outbound-format.ts";
import { readReceiverSecrets, sealedName, signingSecrets } from "./rules/outbound-receiver.ts";
import { signatureHeaders } from "./rules/outbound-signature.ts";
import { isAccepted, keptAnswer, retryAfterMs, type TryOutcome } from "./rules/outbound-tries.ts";
import { unsealSecret } from "../../domain/secret/secret.ts";
import type { OutboundWebhook } from "./ports/outbound-webhooks.ts";
import { Measures } from "../../telemetry/port.ts";
import { Keyring } from "../../services/keyring.ts";
import { OutboundSender } from "./ports/outbound-sender.ts";

/** What a request needs of its receiver. */
export interface Receiver extends Pick<OutboundWebhook, "id" | "projectId" | "sealed"> {
  readonly format: OutboundFormat;
}

export const OUTCOMES = ["delivered", "refused", "no_answer"] as const;
export type CountedOutcome = (typeof OUTCOMES)[number];

export class Outbound extends Context.Service<
  Outbound,
  {
    /** One request. It never fails: a receiver that cannot be reached is an outcome, too. */
    readonly send: (receiver: Receiver, message: OutboundMessage) => Effect.Effect<TryOutcome>;
    /** Requests since this process began, by outcome. */
    readonly counts: () => ReadonlyMap<CountedOutcome, number>;
  }
>()("platform/notifications/Outbound") {}

const UNREADABLE: TryOutcome = {
  status: null,
  error:
    "The stored address cannot be opened with this service's master key. Delete the webhook and add it again.",
  answer: "",
  tookMs: 0,
  retryAfterMs: null,
};

const countedAs = (outcome: TryOutcome): CountedOutcome => {
  if (isAccepted(outcome)) return "delivered";
  return outcome.status === null ? "no_answer" : "refused";
};

export const outboundLayer = Layer.effect(
  Outbound,
  Effect.gen(function* () {
    const { secrets: keyring } = yield* Keyring;
    const sender = yield* OutboundSender;
    const measures = yield* Measures;
    const counts = new Map<CountedOutcome, number>();

    const exchange = Effect.fnUntraced(function* (receiver: Receiver, message: OutboundMessage) {
      const { id, projectId, sealed, format } = receiver;
      const place = { projectId, name: sealedName(id), version: sealed.version };
      const opened = unsealSecret(keyring, place, sealed.envelope);
      if (Result.isFailure(opened)) return UNREADABLE;
      const secrets = readReceiverSecrets(opened.success);
      const now = yield* Clock.currentTimeMillis;
      const body = formattedBody(format, message);
      const signing = signingSecrets(secrets, now);
      const signed = { id: message.id, timestamp: Math.floor(now / 1000), body };
      const answer = yield* sender({
        url: secrets.url,
        headers: {
          "content-type": "application/json",
          "user-agent": "platform-webhooks",
          ...(signing.length > 0 && signatureHeaders(signing, signed)),
        },
        body,
      });
      const { status, error, tookMs } = answer;
      const wanted = retryAfterMs(answer.retryAfter ?? undefined, yield* Clock.currentTimeMillis);
      return { status, error, answer: keptAnswer(answer.body), tookMs, retryAfterMs: wanted };
    });

    return {
      send: (receiver, message) =>
        Effect.tap(exchange(receiver, message), (outcome) =>
          Effect.sync(() => {
            const counted = countedAs(outcome);
            counts.set(counted, (counts.get(counted) ?? 0) + 1);
            measures.observe("delivery_seconds", { outcome: counted }, outcome.tookMs / 1000);
          }),
        ),
      counts: () => counts,
    };
  }),
);
