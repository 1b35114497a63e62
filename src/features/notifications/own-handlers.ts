/** Handlers of own-api.ts. No answer has the address of a chat. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { Caller } from "../../http/api/access.ts";
import { badRequest, Conflict, notFound } from "../../http/api/errors.ts";
import { Platform } from "../../http/api/platform.ts";
import { Addresses } from "../../http/limits.ts";
import { InstallationLook } from "../../http/pages/look.ts";
import { withApiErrors } from "../../http/steps/answers.ts";
import { instantOrNull } from "../../http/steps/wire.ts";
import { withAudit } from "../../services/audit.ts";
import { newUuid } from "../../services/entropy.ts";
import { Outbound } from "./outbound.ts";
import { OwnNoticesGroup } from "./own-api.ts";
import { Mailer } from "./ports/mailer.ts";
import { OutboundDeliveries, type OutboundDelivery } from "./ports/outbound-deliveries.ts";
import { OwnReceivers, type NewOwnReceiver, type OwnReceiver } from "./ports/own-receivers.ts";
import { deliveryWire, receiverUrl, requireSending, sealReceiver, testWire } from "./receivers.ts";
import { shownReceiver } from "./rules/outbound-receiver.ts";
import type { NoticeKind } from "./rules/events.ts";
import { ownTest, type ChatFormat, type NoticePlace } from "./rules/own-notice.ts";

const UNAVAILABLE = {
  not_set_up: "This service sends no mail. Its operator can name a mail server: PLATFORM_SMTP_URL.",
  no_address: "No sign-in of yours has a verified address. Sign in with a provider that has one.",
} as const;

const ownId = Effect.map(Caller, ({ user }) => user.id);

const receiverAt = Effect.fnUntraced(function* (place: NoticePlace) {
  const own = yield* (yield* OwnReceivers).list(yield* ownId);
  return own.find(({ format }) => (format === "mail") === (place === "mail")) ?? null;
});

const placeWire = (receiver: OwnReceiver | null, last: OutboundDelivery | undefined) => ({
  status: receiver?.status ?? ("off" as const),
  tells: receiver?.tells ?? [],
  disabled_reason: receiver?.disabledReason ?? null,
  failing_since: instantOrNull(receiver?.failingSince ?? null),
  last_delivery: last === undefined ? null : deliveryWire(last),
});

/** The address of the person's mail, or why she gets none. */
const mailbox = Effect.gen(function* () {
  const address = yield* (yield* OwnReceivers).address(yield* ownId);
  const isSetUp = (yield* Mailer) !== null;
  const unavailable = isSetUp ? (address === null ? ("no_address" as const) : null) : ("not_set_up" as const);
  return { address, unavailable };
});

const get = Effect.gen(function* () {
  const [mail, chat] = [yield* receiverAt("mail"), yield* receiverAt("chat")];
  const ids = [mail, chat].flatMap((receiver) => (receiver === null ? [] : [receiver.id]));
  const newest = yield* (yield* OutboundDeliveries).newest(ids);
  const receiverWire = (receiver: OwnReceiver | null) => placeWire(receiver, newest.get(receiver?.id ?? ""));
  const isChat = chat !== null && chat.format !== "mail";
  return {
    mail: { ...receiverWire(mail), ...(yield* mailbox) },
    chat: {
      ...receiverWire(chat),
      format: isChat ? chat.format : null,
      url: isChat ? chat.shownUrl : null,
    },
  };
});

/** Saves a receiver, and answers with all. */
const save = Effect.fnUntraced(function* (receiver: NewOwnReceiver) {
  yield* (yield* OwnReceivers).save(receiver).pipe(
    withAudit(({ format, tells, shownUrl }) => ({
      action: "notices.saved",
      target: format,
      changes: { tells, ...(shownUrl !== null && { url: shownUrl }) },
    })),
  );
  return yield* get;
});

const newFields = Effect.fnUntraced(function* (receiver: OwnReceiver | null, tells: readonly NoticeKind[]) {
  return {
    id: receiver?.id ?? (yield* newUuid),
    userId: yield* ownId,
    tells: [...new Set(tells)],
    now: yield* Clock.currentTimeMillis,
  };
});

const setMail = Effect.fnUntraced(function* (tells: readonly NoticeKind[]) {
  const { unavailable } = yield* mailbox;
  if (unavailable !== null)
    return yield* new Conflict({ error: UNAVAILABLE[unavailable], code: `mail_${unavailable}` });
  const fields = yield* newFields(yield* receiverAt("mail"), tells);
  return yield* save({ ...fields, format: "mail", shownUrl: null, sealed: null });
});

interface ChatWish {
  readonly tells: readonly NoticeKind[];
  readonly format?: ChatFormat;
  readonly url?: string;
}

/** Without an address, the chat stays the same. Another address is another receiver: what waits for the former one is dropped. */
const setChat = Effect.fnUntraced(function* ({ tells, format, url: text }: ChatWish) {
  const receiver = yield* receiverAt("chat");
  if (text === undefined) {
    if (receiver === null || receiver.format === "mail") return yield* badRequest("url", "is needed");
    if (format !== undefined && format !== receiver.format)
      return yield* badRequest("url", "is needed for another format");
    return yield* save({ ...receiver, ...(yield* newFields(receiver, tells)) });
  }
  if (format === undefined) return yield* badRequest("format", "is needed with an address");
  const url = yield* receiverUrl(text);
  const fields = yield* newFields(null, tells);
  const sealed = yield* sealReceiver(
    { ownerId: fields.userId, id: fields.id, version: 1 },
    { url: url.href, secret: null, previous: null },
  );
  return yield* save({ ...fields, format, shownUrl: shownReceiver(url, format), sealed });
});

const remove = Effect.fnUntraced(function* (place: NoticePlace) {
  const isRemoved = yield* (yield* OwnReceivers)
    .remove(yield* ownId, place)
    .pipe(withAudit((isGone) => (isGone ? { action: "notices.removed", target: place } : null)));
  if (!isRemoved) return yield* notFound("notices");
});

/** Sends a test immediately, and returns its outcome. It leaves no delivery. */
const test = Effect.fnUntraced(function* (place: NoticePlace) {
  const receiver = yield* receiverAt(place);
  if (receiver === null) return yield* notFound("notices");
  yield* requireSending;
  const { id, userId, format, sealed } = receiver;
  const about = {
    at: yield* Clock.currentTimeMillis,
    installation: (yield* InstallationLook).name,
    publicUrl: (yield* Addresses).publicUrl,
  };
  // It is about no project that she could have lost.
  const person = { id: userId, isActive: true, role: "viewer" } as const;
  const message = ownTest(yield* newUuid, about);
  return testWire(yield* (yield* Outbound).send({ id, ownerId: userId, person, format, sealed }, message));
});

export const ownNoticesHandlers = HttpApiBuilder.group(
  Platform.add(OwnNoticesGroup),
  "ownNotices",
  (handlers) =>
    handlers
      .handle("get", () => withApiErrors(get))
      .handle("setMail", ({ payload }) => withApiErrors(setMail(payload.tells)))
      .handle("setChat", ({ payload }) => withApiErrors(setChat(payload)))
      .handle("remove", ({ params }) => withApiErrors(remove(params.place)))
      .handle("test", ({ params }) => withApiErrors(test(params.place))),
);
