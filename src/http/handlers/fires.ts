/** Handlers of api/triggers/fires.ts. */
import { isUtf8 } from "node:buffer";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schema from "effect/Schema";
import { HttpApiBuilder } from "effect/http-api";
import { fireWords, instantWords } from "../../services/triggers/firing.ts";
import { unpackRequest } from "../../services/triggers/stored-request.ts";
import { parseWebhookBody, webhookVariables } from "../../domain/trigger/prompt.ts";
import type { TriggerDefinition } from "../../domain/trigger/trigger.ts";
import { parseUuid } from "../../domain/ids.ts";
import { Admissions } from "../../store/ports/triggers/admissions.ts";
import { BadCursor } from "../../store/ports/errors.ts";
import { Fires, type Fire, type StoredRequest } from "../../store/ports/triggers/fires.ts";
import { listReader } from "../callers/access.ts";
import { requirePrivilege } from "../callers/authorize.ts";
import { Caller } from "../api/access.ts";
import { type FirePage, FiresGroup, QueueWire, type statusQuery } from "../api/triggers/fires.ts";
import { HandMessage } from "../api/triggers/triggers.ts";
import { Conflict, notFound, Unprocessable } from "../api/errors.ts";
import { withApiErrors, typedResponse, requireProject } from "../steps/answers.ts";
import { fireByHand, handWords, lastFiredAt } from "../steps/projects/hand-fires.ts";
import { fireWire, pageRequest, wireForm } from "../steps/wire.ts";
import { Platform } from "../api/platform.ts";

type FirePath = { readonly pid: string; readonly id: string };

const queuedForm = wireForm(QueueWire);

const list = Effect.fnUntraced(function* (
  pid: string,
  slug: string | null,
  query: Schema.Struct.Type<typeof statusQuery>,
) {
  yield* requireProject(yield* Caller, pid);
  const request = {
    ...pageRequest(query),
    slug,
    status: query.status ?? null,
    hasFailed: query.outcome === "failed",
  };
  const page = yield* (yield* Fires).list(pid, request);
  return typedResponse<typeof FirePage.Encoded>({
    fires: page.items.map(fireWire),
    next_cursor: page.nextCursor,
  });
});

const fireFor = Effect.fnUntraced(function* ({ pid, id }: FirePath) {
  yield* requireProject(yield* Caller, pid);
  const fire = yield* (yield* Fires).get(id);
  return fire === null || fire.projectId !== pid ? yield* notFound("fire") : fire;
});

const requestWire = (request: StoredRequest) => {
  const { headers } = request;
  const bytes = Buffer.from(unpackRequest(request));
  const encoding = isUtf8(bytes) ? ("utf8" as const) : ("base64" as const);
  return {
    headers:
      headers === null
        ? null
        : {
            content_type: headers.contentType,
            user_agent: headers.userAgent,
            forwarded_for: headers.forwardedFor,
          },
    body: bytes.toString(encoding),
    encoding,
  };
};

const get = Effect.fnUntraced(function* (path: FirePath) {
  const fire = yield* fireFor(path);
  const { accountId } = yield* Caller;
  const fires = yield* Fires;
  const request = yield* fires.request(fire.id);
  return {
    ...fireWire(fire),
    request: request === null ? null : requestWire(request),
    prompt: yield* fires.prompt(fire.id),
    position: fire.status === "queued" ? yield* fires.position(accountId, fire.id) : null,
  };
});

/** A repeated delivery is not stored again: the fire that answered it has the request. */
const answeringFire = Effect.fnUntraced(function* (fire: Fire) {
  const { status, duplicateOf } = fire;
  if (status !== "duplicate") return fire;
  const first = duplicateOf === null ? null : yield* (yield* Fires).get(duplicateOf);
  return first ?? (yield* firstIsGone());
});

const firstIsGone = () =>
  new Conflict({
    error:
      "This delivery is a repetition, and the fire of the first one is no longer in the list. Have the sender send it again, with another id.",
    code: "duplicate_delivery",
  });

const noTrigger = () =>
  new Conflict({
    error:
      "This was a person's request for a session. Only runs of triggers can be replayed: start a session.",
    code: "no_trigger",
  });

const notStored = () =>
  new Conflict({
    error:
      "The request of this fire is not stored: it was too large, or is too old. Have the sender send it again.",
    code: "request_not_stored",
  });

/** A stored message must satisfy today's limits: it may be older than they are. */
const decodeMessage = Schema.decodeUnknownOption(Schema.fromJsonString(HandMessage));

const invalidMessage = () =>
  new Unprocessable({
    error:
      "The stored text or source of this fire is too long for a manual fire. Fire the trigger again by hand.",
    code: "message_too_large",
  });

/**
 * The prompt of a replayed fire, rendered by the trigger as it is now.
 *
 * @returns null if there is no request to render it from; `invalid` if a manual fire's message exceeds its limits.
 */
const wordsAgain = (
  fire: Fire,
  trigger: TriggerDefinition,
  from: Parameters<typeof handWords>[2] & { readonly request: StoredRequest | null },
): ReturnType<typeof handWords> | "invalid" | null => {
  const { request, ...by } = from;
  if (fire.kind === "cron") {
    if (trigger.type !== "cron" || fire.scheduledFor === null) return null;
    return instantWords(trigger, fire.scheduledFor);
  }
  if (request === null) return null;
  const body = unpackRequest(request);
  if (fire.kind === "manual") {
    const message = decodeMessage(Buffer.from(body).toString("utf8"));
    return Option.isNone(message) ? "invalid" : handWords(trigger, message.value, by);
  }
  const headers = {
    contentType: request.headers?.contentType ?? undefined,
    userAgent: request.headers?.userAgent ?? undefined,
    forwardedFor: request.headers?.forwardedFor ?? undefined,
  };
  const variables = webhookVariables(trigger, {
    firedAtMs: by.firedAtMs,
    body: parseWebhookBody(body, headers.contentType),
    headers,
  });
  return fireWords(trigger, variables);
};

/**
 * Replays a fire from its stored request, as a person's fire of the same kind. It gets a row of its own that names this
 * one.
 */
export const replay = Effect.fnUntraced(function* (path: FirePath) {
  const fire = yield* answeringFire(yield* fireFor(path));
  const { kind, triggerSlug: slug } = fire;
  if (kind === "session" || slug === null) return yield* noTrigger();
  const request = yield* (yield* Fires).request(fire.id);
  const actor = (yield* Caller).user.id;
  const firedAtMs = yield* Clock.currentTimeMillis;
  const lastFiredAtMs = yield* lastFiredAt({ pid: path.pid, slug });
  return yield* fireByHand({ pid: path.pid, slug }, ({ trigger }) => {
    const words = wordsAgain(fire, trigger, { request, firedAtMs, actor, lastFiredAtMs });
    if (words === "invalid") return Effect.fail(invalidMessage());
    return words === null
      ? Effect.fail(notStored())
      : Effect.succeed({
          kind,
          ...words,
          request,
          deliveryId: fire.deliveryId,
          scheduledFor: fire.scheduledFor,
          replayOf: fire.id,
        });
  });
});

export const cancel = Effect.fnUntraced(function* (path: FirePath) {
  const fire = yield* fireFor(path);
  const caller = yield* Caller;
  const isHers = caller.origin === "user" && (yield* (yield* Fires).requester(fire.id)) === caller.user.id;
  if (!isHers) yield* requirePrivilege(caller, "stop_session");
  const now = yield* Clock.currentTimeMillis;
  if (yield* (yield* Admissions).cancel(fire.id, now)) return;
  return yield* new Conflict({
    error: "Only a queued fire can be cancelled. This fire is no longer queued.",
    code: "not_queued",
  });
});

/**
 * A page begins after the fire that its cursor names. If that fire has started, all fires before it have too, so the
 * page begins with the first one.
 */
const queuePage = Effect.fnUntraced(function* (query: Parameters<typeof pageRequest>[0]) {
  const { limit, cursor } = pageRequest(query);
  if (cursor !== null && parseUuid(cursor) === null) return yield* new BadCursor({ cursor });
  const caller = yield* Caller;
  const queue = yield* (yield* Fires).queue({ accountId: caller.accountId, userId: listReader(caller) });
  const from = queue.findIndex(({ fireId }) => fireId === cursor) + 1;
  const page = queue.slice(from, from + limit);
  return {
    queue: page.map(queuedForm),
    next_cursor: from + limit < queue.length ? (page.at(-1)?.fireId ?? null) : null,
  };
});

export const firesHandlers = HttpApiBuilder.group(Platform.add(FiresGroup), "fires", (handlers) =>
  handlers
    .handle("ofProject", ({ params, query }) => withApiErrors(list(params.pid, query.slug ?? null, query)))
    .handle("ofTrigger", ({ params, query }) => withApiErrors(list(params.pid, params.slug, query)))
    .handle("get", ({ params }) => withApiErrors(get(params)))
    .handle("replay", ({ params }) => withApiErrors(replay(params)))
    .handle("cancel", ({ params }) => withApiErrors(cancel(params)))
    .handle("queue", ({ query }) => withApiErrors(queuePage(query))),
);
