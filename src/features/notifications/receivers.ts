/** What handlers of projects' receivers and of people's share. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { NONCE_BYTES, sealSecret } from "../../domain/secret/secret.ts";
import { Pause, PAUSED } from "../../ground/pause.ts";
import { badRequest, Unavailable } from "../../http/api/errors.ts";
import { Addresses, Limits } from "../../http/limits.ts";
import { wireForm } from "../../http/steps/wire.ts";
import { Entropy } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { DeliveryWire } from "./api.ts";
import type { OutboundDelivery } from "./ports/outbound-deliveries.ts";
import type { OutboundMessage } from "./rules/outbound-event.ts";
import {
  parseReceiver,
  sealedName,
  writeReceiverSecrets,
  type ReceiverSecrets,
} from "./rules/outbound-receiver.ts";
import { isAccepted, type TryOutcome } from "./rules/outbound-tries.ts";

/** A restored copy that is paused sends no test either. */
export const requireSending = Effect.flatMap(Pause, ({ isOn }) =>
  isOn ? Effect.fail(new Unavailable({ error: PAUSED, code: "paused" })) : Effect.void,
);

const deliveryForm = wireForm(DeliveryWire);

export const deliveryWire = (delivery: OutboundDelivery) =>
  deliveryForm({
    ...delivery,
    eventId: delivery.messageId,
    nextTryAt: delivery.dueAt,
    data: (JSON.parse(delivery.message) as OutboundMessage).data,
  });

/** What became of a test. */
export const testWire = (outcome: TryOutcome) => {
  const { status, error, answer, tookMs } = outcome;
  return { delivered: isAccepted(outcome), status, error, answer, took_ms: Math.round(tookMs) };
};

/** An address that a person gave. */
export const receiverUrl = Effect.fnUntraced(function* (url: string) {
  const { webhookAllowHosts } = yield* Limits;
  const { publicUrl } = yield* Addresses;
  const parsed = parseReceiver(url, { allowHosts: new Set(webhookAllowHosts), publicUrl });
  return Result.isFailure(parsed) ? yield* badRequest("url", parsed.failure) : parsed.success;
});

/** An address and its secrets, for the store. @param place under its owner: a project or a person */
export const sealReceiver = Effect.fnUntraced(function* (
  { ownerId, id, version }: { readonly ownerId: string; readonly id: string; readonly version: number },
  secrets: ReceiverSecrets,
) {
  const nonce = (yield* Entropy)(NONCE_BYTES);
  const place = { projectId: ownerId, name: sealedName(id), version };
  const value = writeReceiverSecrets(secrets);
  return { version, envelope: sealSecret((yield* Keyring).secrets, place, { value, nonce }) };
});
