/**
 * Sends an event's message to a receiver: opens its sealed address and secrets, signs, sends, and counts the outcomes of this
 * process. Mail goes to its person's address.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import type { OutboundMessage } from "./rules/outbound-event.ts";
import { formattedBody, mailText, type OutboundFormat } from "./rules/outbound-format.ts";
import { readReceiverSecrets, sealedName, signingSecrets } from "./rules/outbound-receiver.ts";
import { signatureHeaders } from "./rules/outbound-signature.ts";
import { isAccepted, keptAnswer, retryAfterMs, type TryOutcome } from "./rules/outbound-tries.ts";
import { whyLapsed } from "../../domain/person/role.ts";
import { unsealSecret } from "../../domain/secret/secret.ts";
import type { Stored } from "../../store/ports/journal.ts";
import { Mailer } from "./ports/mailer.ts";
import type { ClaimedDelivery } from "./ports/outbound-deliveries.ts";
import { OwnReceivers } from "./ports/own-receivers.ts";
import { Measures } from "../../telemetry/port.ts";
import { Keyring } from "../../services/keyring.ts";
import { OutboundSender } from "./ports/outbound-sender.ts";

/** What a request needs of its receiver. */
export type Receiver = Pick<ClaimedDelivery, "ownerId" | "person" | "format" | "sealed"> & {
  readonly id: string;
};

export const OUTCOMES = ["delivered", "refused", "no_answer"] as const;
export type CountedOutcome = (typeof OUTCOMES)[number];

export class Outbound extends Context.Service<
  Outbound,
  {
    /** One request, or one mail. A receiver that cannot be reached is an outcome, too. A person who may not see the project is sent nothing. */
    readonly send: (receiver: Receiver, message: OutboundMessage) => Stored<TryOutcome>;
    /** Requests since this process began, by outcome. */
    readonly counts: () => ReadonlyMap<CountedOutcome, number>;
  }
>()("platform/notifications/Outbound") {}

const none = (error: string, ends?: "cancelled"): TryOutcome => ({
  status: null,
  error,
  answer: "",
  tookMs: 0,
  retryAfterMs: null,
  ...(ends !== undefined && { ends }),
});

const UNREADABLE = none(
  "The stored address cannot be opened with this service's master key. Delete the webhook and add it again.",
);
const NO_ACCESS = none("The person may not see the project any more.", "cancelled");
const NO_SERVER = none("This service sends no mail: its operator has named no mail server.", "cancelled");
const NO_ADDRESS = none("No sign-in of the person has a verified address.", "cancelled");

const countedAs = (outcome: TryOutcome): CountedOutcome => {
  if (isAccepted(outcome)) return "delivered";
  return outcome.status === null ? "no_answer" : "refused";
};

export const outboundLayer = Layer.effect(
  Outbound,
  Effect.gen(function* () {
    const { secrets: keyring } = yield* Keyring;
    const sender = yield* OutboundSender;
    const mailer = yield* Mailer;
    const { address } = yield* OwnReceivers;
    const measures = yield* Measures;
    const counts = new Map<CountedOutcome, number>();

    const request = Effect.fnUntraced(function* (
      { id, ownerId, sealed }: Receiver,
      format: OutboundFormat,
      message: OutboundMessage,
    ) {
      if (sealed === null) return UNREADABLE;
      const place = { projectId: ownerId, name: sealedName(id), version: sealed.version };
      const opened = unsealSecret(keyring, place, sealed.envelope);
      if (Result.isFailure(opened)) return UNREADABLE;
      const secrets = readReceiverSecrets(opened.success);
      const now = yield* Clock.currentTimeMillis;
      const body = formattedBody(format, message);
      const signing = signingSecrets(secrets, now);
      const signedContent = { id: message.id, timestamp: Math.floor(now / 1000), body };
      const answer = yield* sender({
        url: secrets.url,
        headers: {
          "content-type": "application/json",
          "user-agent": "platform-webhooks",
          ...(signing.length > 0 && signatureHeaders(signing, signedContent)),
        },
        body,
      });
      const { status, error, tookMs } = answer;
      const retryAfter = retryAfterMs(answer.retryAfter ?? undefined, yield* Clock.currentTimeMillis);
      return { status, error, answer: keptAnswer(answer.body), tookMs, retryAfterMs: retryAfter };
    });

    const mail = Effect.fnUntraced(function* (userId: string, message: OutboundMessage) {
      if (mailer === null) return NO_SERVER;
      const to = yield* address(userId);
      if (to === null) return NO_ADDRESS;
      return yield* mailer({ to, id: message.id, ...mailText(message) });
    });

    const exchange = (receiver: Receiver, message: OutboundMessage) => {
      const { person, format } = receiver;
      if (person !== null && whyLapsed(person, "viewer") !== null) return Effect.succeed(NO_ACCESS);
      if (format !== "mail") return request(receiver, format, message);
      return person === null ? Effect.succeed(NO_ADDRESS) : mail(person.id, message);
    };

    return {
      send: (receiver, message) =>
        Effect.tap(exchange(receiver, message), (outcome) =>
          Effect.sync(() => {
            if (outcome.ends === "cancelled") return;
            const kind = countedAs(outcome);
            counts.set(kind, (counts.get(kind) ?? 0) + 1);
            measures.observe("delivery_seconds", { outcome: kind }, outcome.tookMs / 1000);
          }),
        ),
      counts: () => counts,
    };
  }),
);
