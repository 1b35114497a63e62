/** Handlers of api.ts. A signing secret is in the answer that makes it, and in no other. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpApiBuilder } from "effect/http-api";
import { testMessage } from "./rules/outbound-event.ts";
import type { OutboundFormat } from "./rules/outbound-format.ts";
import {
  readReceiverSecrets,
  sealedName,
  shownReceiver,
  type ReceiverSecrets,
} from "./rules/outbound-receiver.ts";
import {
  makeOutboundSecret,
  outboundSecretFault,
  OUTBOUND_SECRET_BYTES,
} from "./rules/outbound-signature.ts";
import { PREVIOUS_SECRET_MS } from "./rules/outbound-tries.ts";
import { unsealSecret } from "../../domain/secret/secret.ts";
import { withAudit, auditedChange, unlessSame } from "../../services/audit.ts";
import { Entropy, newUuid } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { Outbound } from "./outbound.ts";
import { Events } from "../../store/ports/events.ts";
import { OutboundDeliveries, type OutboundDelivery } from "./ports/outbound-deliveries.ts";
import { OutboundWebhooks, type OutboundWebhook } from "./ports/outbound-webhooks.ts";
import { Caller } from "../../http/api/access.ts";
import { badRequest, Conflict, notFound } from "../../http/api/errors.ts";
import { Addresses } from "../../http/limits.ts";
import { withApiErrors, projectFor, requireProject } from "../../http/steps/answers.ts";
import { instant, pageRequest, wireForm } from "../../http/steps/wire.ts";
import { deliveryWire, receiverUrl, requireSending, sealReceiver, testWire } from "./receivers.ts";
import { type Change, OutboundWebhooksGroup, WebhookWire, type Wish } from "./api.ts";
import { Platform } from "../../http/api/platform.ts";

interface Params {
  readonly pid: string;
  readonly id: string;
}

const webhookWarning = ({ status, warnedAt, failingSince }: OutboundWebhook): string | null =>
  status === "disabled" || warnedAt === null || failingSince === null
    ? null
    : `Every request has failed since ${instant(failingSince)}. After five days the webhook is disabled.`;

const webhookForm = wireForm(WebhookWire);

const webhookWire = (
  webhook: OutboundWebhook,
  { last, now }: { readonly last: OutboundDelivery | undefined; readonly now: number },
) => {
  const { shownUrl, previousSecretUntil } = webhook;
  return webhookForm({
    ...webhook,
    url: shownUrl,
    warning: webhookWarning(webhook),
    previousSecretValidUntil:
      previousSecretUntil === null || previousSecretUntil <= now ? null : previousSecretUntil,
    lastDelivery: last === undefined ? null : deliveryWire(last),
  });
};

/** Receivers with their newest deliveries. */
const showWebhooks = Effect.fnUntraced(function* (webhooks: readonly OutboundWebhook[]) {
  const newest = yield* (yield* OutboundDeliveries).newest(webhooks.map(({ id }) => id));
  const now = yield* Clock.currentTimeMillis;
  return webhooks.map((webhook) => webhookWire(webhook, { last: newest.get(webhook.id), now }));
});

const shownOne = Effect.fnUntraced(function* (webhook: OutboundWebhook | null) {
  const [wire] = webhook === null ? [] : yield* showWebhooks([webhook]);
  return wire ?? (yield* notFound("webhook"));
});

/** The receiver of the path, in a project that the caller reaches. */
const webhookFor = Effect.fnUntraced(function* ({ pid, id }: Params) {
  yield* requireProject(yield* Caller, pid);
  return (yield* (yield* OutboundWebhooks).get(pid, id)) ?? (yield* notFound("webhook"));
});

/** The secret that a person gave, or a fresh one. Null if the format has no signature. */
const chosenSecret = Effect.fnUntraced(function* (format: OutboundFormat, wish: string | undefined) {
  if (format !== "standard")
    return wish === undefined ? null : yield* badRequest("secret", `the format ${format} has no signature`);
  const fault = wish === undefined ? null : outboundSecretFault(wish);
  if (fault !== null) return yield* badRequest("secret", fault);
  return wish ?? makeOutboundSecret((yield* Entropy)(OUTBOUND_SECRET_BYTES));
});

const openSecrets = Effect.fnUntraced(function* ({
  projectId,
  id,
  sealed: { version, envelope },
}: OutboundWebhook) {
  const place = { projectId, name: sealedName(id), version };
  const opened = unsealSecret((yield* Keyring).secrets, place, envelope);
  if (Result.isFailure(opened))
    return yield* new Conflict({
      error: "The stored address cannot be opened with this service's master key. Add the webhook again.",
      code: "secret_unreadable",
    });
  return readReceiverSecrets(opened.success);
});

const changedMeanwhile = new Conflict({
  error: "Another request changed this webhook at the same time. Try again.",
  code: "conflict",
});

/** The present end of a project's events. */
const endOfEvents = Effect.fnUntraced(function* (projectId: string) {
  const { after } = yield* Events;
  return (yield* after({ projectId, sessionId: null, cursor: null, limit: 1 })).cursor;
});

const create = Effect.fnUntraced(function* (pid: string, wish: typeof Wish.Type) {
  const project = yield* projectFor(yield* Caller, pid);
  const { format = "standard" } = wish;
  const url = yield* receiverUrl(wish.url);
  const secret = yield* chosenSecret(format, wish.secret);
  const id = yield* newUuid;
  const secrets = { url: url.href, secret, previous: null };
  const webhook = yield* (yield* OutboundWebhooks)
    .create({
      id,
      projectId: project.id,
      format,
      shownUrl: shownReceiver(url, format),
      events: [...new Set(wish.events)],
      sealed: yield* sealReceiver({ ownerId: project.id, id, version: 1 }, secrets),
      cursor: yield* endOfEvents(project.id),
      now: yield* Clock.currentTimeMillis,
    })
    .pipe(
      withAudit((newWebhook) => ({
        action: "webhook.created",
        target: id,
        changes: { format, url: newWebhook.shownUrl, events: newWebhook.events },
      })),
      Effect.catchTag("ReceiversFull", ({ limit }) =>
        Effect.fail(
          new Conflict({
            error: `A project has at most ${limit} outbound webhooks. Delete one first.`,
            code: "too_many_webhooks",
            details: { limit },
          }),
        ),
      ),
    );
  return { ...(yield* shownOne(webhook)), secret };
});

/** The next version of a receiver's secrets. */
const resealSecrets = ({ id, projectId, sealed }: OutboundWebhook, secrets: ReceiverSecrets) =>
  sealReceiver({ id, ownerId: projectId, version: sealed.version + 1 }, secrets);

/** Another address, under the same secrets. */
const changeAddress = Effect.fnUntraced(function* (webhook: OutboundWebhook, address: string) {
  const url = yield* receiverUrl(address);
  const secrets = { ...(yield* openSecrets(webhook)), url: url.href };
  return {
    ...(yield* resealSecrets(webhook, secrets)),
    shownUrl: shownReceiver(url, webhook.format),
    previousSecretUntil: webhook.previousSecretUntil,
  };
});

const auditFields = ({ shownUrl, events, status }: OutboundWebhook) => ({ url: shownUrl, events, status });

const change = Effect.fnUntraced(function* (params: Params, { url, events, status }: typeof Change.Type) {
  const webhook = yield* webhookFor(params);
  const { id, projectId } = webhook;
  const webhooks = yield* OutboundWebhooks;
  const now = yield* Clock.currentTimeMillis;
  const secrets = url === undefined ? undefined : yield* changeAddress(webhook, url);
  const part = {
    ...(events !== undefined && { events: [...new Set(events)] }),
    ...(secrets !== undefined && { secrets }),
  };
  const cursor = status === "enabled" ? yield* endOfEvents(projectId) : null;
  const writes = Effect.gen(function* () {
    let current: OutboundWebhook | null = webhook;
    if (Object.keys(part).length > 0) current = yield* webhooks.change({ projectId, id, ...part, now });
    if (status === "disabled") current = yield* webhooks.disable(projectId, id, { reason: "requested", now });
    if (cursor !== null) current = yield* webhooks.enable(projectId, id, { cursor, now });
    return current;
  });
  const result = yield* writes.pipe(
    auditedChange({
      target: id,
      read: Effect.map(webhooks.get(projectId, id), (row) => row && auditFields(row)),
      // An address may change where it is not shown: that of a chat is a secret.
      say: (differences) =>
        unlessSame({
          action: "webhook.updated",
          target: id,
          changes: { url: secrets?.shownUrl, ...differences },
        }),
    }),
    Effect.catchTag("Fenced", () => Effect.fail(changedMeanwhile)),
  );
  return yield* shownOne(result);
});

/** Sends a test immediately, and returns its outcome. It leaves no delivery. */
const test = Effect.fnUntraced(function* (params: Params) {
  const project = yield* projectFor(yield* Caller, params.pid);
  const webhook = yield* webhookFor(params);
  yield* requireSending;
  const { publicUrl } = yield* Addresses;
  const at = yield* Clock.currentTimeMillis;
  const about = { at, projectId: project.id, projectName: project.name, publicUrl };
  const receiver = { ...webhook, ownerId: webhook.projectId, person: null };
  return testWire(yield* (yield* Outbound).send(receiver, testMessage(yield* newUuid, about)));
});

const rotate = Effect.fnUntraced(function* (params: Params, wish: string | undefined) {
  const webhook = yield* webhookFor(params);
  const { url, secret: former } = yield* openSecrets(webhook);
  if (former === null)
    return yield* new Conflict({
      error: `The format ${webhook.format} has no signature, so there is no secret to replace.`,
      code: "no_signature",
    });
  const secret = (yield* chosenSecret(webhook.format, wish)) ?? "";
  const now = yield* Clock.currentTimeMillis;
  const until = now + PREVIOUS_SECRET_MS;
  const content = { url, secret, previous: { secret: former, until } };
  const row = { action: "webhook.secret_rotated", target: webhook.id } as const;
  const result = yield* (yield* OutboundWebhooks)
    .change({
      projectId: webhook.projectId,
      id: webhook.id,
      secrets: {
        ...(yield* resealSecrets(webhook, content)),
        shownUrl: webhook.shownUrl,
        previousSecretUntil: until,
      },
      now,
    })
    .pipe(
      withAudit((outcome) => (outcome === null ? null : row)),
      Effect.catchTag("Fenced", () => Effect.fail(changedMeanwhile)),
    );
  if (result === null) return yield* notFound("webhook");
  return { secret, previous_valid_until: instant(until) };
});

const replay = Effect.fnUntraced(function* (params: Params & { readonly did: string }) {
  const webhook = yield* webhookFor(params);
  const now = yield* Clock.currentTimeMillis;
  const row = {
    action: "webhook.delivery_replayed",
    target: webhook.id,
    changes: { delivery_id: params.did },
  } as const;
  const result = yield* (yield* OutboundDeliveries)
    .replay(webhook.id, params.did, now)
    .pipe(withAudit((outcome) => (outcome === null || typeof outcome === "string" ? null : row)));
  if (result === null) return yield* notFound("delivery");
  if (result === "disabled")
    return yield* new Conflict({
      error: "The webhook is disabled. Enable it first.",
      code: "webhook_disabled",
    });
  if (result === "sending")
    return yield* new Conflict({
      error: "The delivery is being sent at this moment. Look at its result first.",
      code: "delivery_in_progress",
    });
  return deliveryWire(result);
});

export const outboundWebhooksHandlers = HttpApiBuilder.group(
  Platform.add(OutboundWebhooksGroup),
  "outboundWebhooks",
  (handlers) =>
    handlers
      .handle("list", ({ params, query }) =>
        withApiErrors(
          Effect.gen(function* () {
            yield* requireProject(yield* Caller, params.pid);
            const page = yield* (yield* OutboundWebhooks).list(params.pid, pageRequest(query));
            return { webhooks: yield* showWebhooks(page.items), next_cursor: page.nextCursor };
          }),
        ),
      )
      .handle("create", ({ params, payload }) => withApiErrors(create(params.pid, payload)))
      .handle("get", ({ params }) => withApiErrors(Effect.flatMap(webhookFor(params), shownOne)))
      .handle("change", ({ params, payload }) => withApiErrors(change(params, payload)))
      .handle("delete", ({ params }) =>
        withApiErrors(
          Effect.gen(function* () {
            const { projectId, id } = yield* webhookFor(params);
            const row = { action: "webhook.deleted", target: id } as const;
            const removal = (yield* OutboundWebhooks).remove(projectId, id);
            if (!(yield* removal.pipe(withAudit((isRemoved) => (isRemoved ? row : null)))))
              return yield* notFound("webhook");
          }),
        ),
      )
      .handle("test", ({ params }) => withApiErrors(test(params)))
      .handle("rotate", ({ params, payload }) => withApiErrors(rotate(params, payload.secret)))
      .handle("deliveries", ({ params, query }) =>
        withApiErrors(
          Effect.gen(function* () {
            const { id } = yield* webhookFor(params);
            const page = yield* (yield* OutboundDeliveries).list(id, pageRequest(query));
            return { deliveries: page.items.map(deliveryWire), next_cursor: page.nextCursor };
          }),
        ),
      )
      .handle("replay", ({ params }) => withApiErrors(replay(params))),
);
