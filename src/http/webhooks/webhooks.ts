/**
 * The webhook receiver (spec 4.1, 5.4, 7.1). The signature is over the body's bytes as they came, and nobody is asked for
 * anything before it was found right: triggers and keys are held in memory (services/directory.ts). It stands below Effect's
 * router, where a request costs half.
 *
 * Checks in this order (api.md 4 "Webhook"): 400 malformed id or slug, 404 no such listening trigger, 409 no secret, then the
 * body is read and its signature decides 401. What is authentic is 200 where it is a ping or does not match the trigger's
 * filter, else 202. The answer is sent after the fire's row is committed. What is noted of a refusal is noted after it.
 */
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import { Directory, type KnownProject, type SigningKeys } from "../../services/directory.ts";
import { Firing, firePrompt } from "../../services/firing.ts";
import { packRequest } from "../../services/stored-request.ts";
import { WebhookRecord } from "../../services/webhook-record.ts";
import { parseUuid } from "../../domain/ids.ts";
import {
  headerText,
  parseWebhookBody,
  webhookVariables,
  type JsonValue,
  type WebhookHeaders,
} from "../../domain/prompt.ts";
import {
  HUB_SIGNATURE_HEADER,
  PLATFORM_SIGNATURE_HEADER,
  verifySignature,
  type SignatureRefusal,
} from "../../domain/signature.ts";
import { isTriggerSlug, type WebhookTriggerDefinition } from "../../domain/trigger.ts";
import { eventName, isPing } from "../../domain/webhook-event.ts";
import { isFiltered } from "../../domain/webhook-filter.ts";
import { Faults } from "../../store/ports/faults.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import type { StoredRequest, VerifiedWith } from "../../store/ports/records.ts";
import { BadRequest, Conflict, NotFound, statusOf, type ApiError } from "../api/errors.ts";
import { makeArriving } from "../arriving.ts";
import { answerError, answerJson } from "../respond.ts";
import type { RawRoutes } from "../server.ts";
import {
  answerFor,
  badAddress,
  failureFor,
  noSuchTrigger,
  notAuthentic,
  notConfigured,
  PONG,
  refusedWith,
  whyNotListening,
  type Answer,
} from "./webhook-answers.ts";

/** GitHub's own maximum. */
const BODY_LIMIT_BYTES = 25 * 1024 * 1024;
/** Delivery ids are short opaque strings; a longer one is kept as its hash, so that it still tells deliveries apart. */
const DELIVERY_ID_MAX = 200;
/** The first present names the delivery (api.md 4). */
const DELIVERY_HEADERS = ["x-platform-delivery", "x-github-delivery", "webhook-id", "x-gitlab-event-uuid"];
/** So often a fire is decided anew when its project changed while it was on its way. */
const STALE_MAX = 5;

/** Requests that wait for one more look at what listens. Any more are answered at once. */
const MISSING_MAX = 256;

const PATH = /^\/v1\/webhooks\/projects\/([^/?#]+)\/([^/?#]+)(?:\?.*)?$/s;

interface Listening {
  readonly known: KnownProject;
  readonly trigger: WebhookTriggerDefinition;
  readonly keys: SigningKeys;
}

/** What listens at the address, by what is held in memory. */
const listening = (
  directory: Directory["Service"],
  pid: string,
  slug: string,
): Result.Result<Listening, ApiError> => {
  if (parseUuid(pid) === null || !isTriggerSlug(slug)) return Result.fail(badAddress());
  const known = directory.known(pid);
  if (known === null || known.project.status !== "active" || known.project.triggersPaused) {
    return Result.fail(noSuchTrigger());
  }
  const trigger = known.triggers.get(slug);
  if (trigger?.type !== "webhook" || !trigger.enabled) return Result.fail(noSuchTrigger());
  const keys = known.keys.get(trigger.secretEnv);
  return keys === undefined ? Result.fail(notConfigured(trigger)) : Result.succeed({ known, trigger, keys });
};

/** Which of a secret's values a body is signed with. The previous one counts until its instant. */
const verifiedWith = (
  { body, headers }: Delivery,
  { current, previous }: SigningKeys,
  now: number,
): Result.Result<VerifiedWith, SignatureRefusal> => {
  const given = {
    platform: single(headers[PLATFORM_SIGNATURE_HEADER]),
    hub: single(headers[HUB_SIGNATURE_HEADER]),
  };
  const verified = Result.map(verifySignature(body, given, current), () => "current" as const);
  if (Result.isSuccess(verified) || verified.failure !== "mismatched") return verified;
  if (previous === null || previous.until <= now) return verified;
  return Result.map(verifySignature(body, given, previous.key), () => "previous" as const);
};

/** Node gives no list for these headers; a type says that it might. */
const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(", ") : value;

/** The three headers that templates know. */
const knownHeaders = (headers: IncomingHttpHeaders): WebhookHeaders => ({
  contentType: headers["content-type"],
  userAgent: headers["user-agent"],
  forwardedFor: single(headers["x-forwarded-for"]),
});

const textOrNull = (value: string | undefined): string | null =>
  value === undefined ? null : headerText(value);

const storedHeaders = (headers: WebhookHeaders): StoredRequest["headers"] => ({
  contentType: textOrNull(headers.contentType),
  userAgent: textOrNull(headers.userAgent),
  forwardedFor: textOrNull(headers.forwardedFor),
});

/** An empty header names no delivery. */
const deliveryIdOf = (headers: IncomingHttpHeaders): string | null => {
  const id = DELIVERY_HEADERS.map((name) => single(headers[name])).find(
    (value) => value !== undefined && value !== "",
  );
  if (id === undefined) return null;
  return id.length > DELIVERY_ID_MAX ? createHash("sha256").update(id).digest("hex") : id;
};

/** A delivery whose body is there. */
interface Delivery {
  readonly pid: string;
  readonly slug: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
  /** The body as templates see it, read when it is asked for first. */
  readonly parsed: () => JsonValue;
}

export const deliveryOf = (place: Pick<Delivery, "pid" | "slug" | "headers">, body: Uint8Array): Delivery => {
  let parsed: JsonValue | undefined;
  const { "content-type": contentType } = place.headers;
  return { ...place, body, parsed: () => (parsed ??= parseWebhookBody(body, contentType)) };
};

/** A delivery whose signature was found right. */
interface Authentic extends Listening {
  readonly verifiedWith: VerifiedWith;
}

/** Decides a delivery: its signature, what it fires, and the answer after the commit. */
export const makeReceive = Effect.gen(function* () {
  const directory = yield* Directory;
  const firing = yield* Firing;
  const faults = yield* Faults;
  const clock = yield* Clock.Clock;
  const run = Effect.runForkWith(yield* Effect.context());

  const fireOf = (
    { known, trigger, verifiedWith: value }: Authentic,
    { headers, parsed }: Delivery,
    request: StoredRequest | null,
  ) => {
    const variables = webhookVariables(trigger, {
      firedAtMs: clock.currentTimeMillisUnsafe(),
      body: parsed(),
      headers: knownHeaders(headers),
    });
    const isOut = isFiltered(trigger.filter, { headers, body: parsed(), variables });
    return {
      project: known.project,
      trigger,
      kind: "webhook" as const,
      prompt: isOut ? ({ is: "filtered" } as const) : firePrompt(trigger.prompt, variables),
      request,
      userId: known.project.createdBy,
      deliveryId: deliveryIdOf(headers),
      verifiedWith: value,
      scheduledFor: null,
      replayOf: null,
      by: "delivery" as const,
    };
  };

  /** Looked up again where the body took its time: the trigger may be another than when it began to come. */
  const authentic = (delivery: Delivery): Result.Result<Authentic, Answer> => {
    const { pid, slug } = delivery;
    const found = listening(directory, pid, slug);
    if (Result.isFailure(found)) return Result.fail(refusedWith(found.failure));
    const verified = verifiedWith(delivery, found.success.keys, clock.currentTimeMillisUnsafe());
    return Result.isSuccess(verified)
      ? Result.succeed({ ...found.success, verifiedWith: verified.success })
      : Result.fail(notAuthentic(verified.failure));
  };

  return (delivery: Delivery, answer: (answer: Answer) => void): void => {
    const decide = (found: Authentic, stored: StoredRequest | null, attempt: number): void =>
      firing.offer(fireOf(found, delivery, stored), (exit) => {
        if (Exit.isFailure(exit)) {
          run(Effect.logWarning("a webhook was not taken", exit.cause));
          return answer(failureFor(exit.cause));
        }
        if (exit.value.outcome !== "stale") return answer(answerFor(exit.value));
        if (attempt >= STALE_MAX) return answer(failureFor(Cause.fail("stale")));
        const again = Effect.sync(() => {
          const now = authentic(delivery);
          if (Result.isFailure(now)) answer(now.failure);
          else decide(now.success, stored, attempt + 1);
        });
        run(Effect.andThen(Effect.ignore(directory.refresh(delivery.pid)), again));
      });
    const found = authentic(delivery);
    if (Result.isFailure(found)) return answer(found.failure);
    if (isPing(delivery.headers)) return answer(PONG);
    faults("webhook.verified");
    const headers = storedHeaders(knownHeaders(delivery.headers));
    packRequest(delivery.body, headers, (stored) => decide(found.success, stored, 1));
  };
});

/** Longest text of a sender's that a refusal is kept with. */
const KEPT_LENGTH = 200;
const SLUG_KEPT_LENGTH = 128;
const kept = (text: string | undefined | null): string | null =>
  text === undefined || text === null || text === "" ? null : headerText(text.slice(0, KEPT_LENGTH));

/** What is kept of a refused request: no body, no signature. */
const refusalOf = (request: IncomingMessage, bodyBytes: number | null) => {
  const { headers, socket } = request;
  const declared = Number(headers["content-length"] ?? Number.NaN);
  return {
    deliveryId: kept(deliveryIdOf(headers)),
    event: kept(eventName(headers)),
    declaredBytes: Number.isSafeInteger(declared) ? declared : null,
    bodyBytes,
    address: socket.remoteAddress ?? "",
    forwardedFor: kept(single(headers["x-forwarded-for"])),
  };
};

/** A request to the receiver's address. */
/** The answer to a sender whose trigger was not found after one more look. */
const missAnswer = (cause: Cause.Cause<ApiError | StoreError>): Answer => {
  const error = Cause.squash(cause);
  return error instanceof NotFound || error instanceof Conflict ? refusedWith(error) : failureFor(cause);
};

interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly pid: string;
  readonly slug: string;
}

const NOT_FOUND = 404;

/** Answers, and notes it after that (threats.md W36). `bodyBytes`: null where the body was not read. */
const responder =
  (directory: Directory["Service"], record: WebhookRecord["Service"]) =>
  ({ request, response, pid, slug }: Asked, answer: Answer, bodyBytes: number | null): void => {
    if (!("error" in answer)) {
      answerJson(response, answer.status, answer);
      return record.answered(answer.status, answer.is);
    }
    const { error, reason } = answer;
    const status = statusOf(error);
    answerError(response, error);
    record.answered(status, error.code);
    if (reason === null) return;
    record.refused({
      ...refusalOf(request, bodyBytes),
      projectId: pid,
      slug: headerText(slug.slice(0, SLUG_KEPT_LENGTH)),
      status,
      code: error.code,
      reason: reason === error.code && status === NOT_FOUND ? whyNotListening(directory, pid, slug) : reason,
    });
  };

/** The receiver's raw route, for the listener; it lives as long as the scope. */
export const makeReceiver = Effect.gen(function* () {
  const directory = yield* Directory;
  const faults = yield* Faults;
  const arriving = yield* makeArriving;
  const receive = yield* makeReceive;
  const respond = responder(directory, yield* WebhookRecord);
  const run = Effect.runForkWith(yield* Effect.context());
  let missing = 0;

  /** What listens there by now. Another node may just have made it, so a miss is looked up once. */
  const lookedUp = Effect.fnUntraced(function* (pid: string, slug: string) {
    yield* directory.caughtUp;
    return yield* Effect.fromResult(listening(directory, pid, slug));
  });

  const take = (asked: Asked) => {
    const { pid, slug } = asked;
    const found = listening(directory, pid, slug);
    if (Result.isSuccess(found)) return read(asked);
    const { failure: error } = found;
    if (error instanceof BadRequest || missing >= MISSING_MAX)
      return respond(asked, refusedWith(error), null);
    missing += 1;
    run(lookedUp(pid, slug)).addObserver((exit) => {
      missing -= 1;
      if (Exit.isSuccess(exit)) read(asked);
      else respond(asked, missAnswer(exit.cause), null);
    });
  };

  const read = (asked: Asked) => {
    const { request, pid, slug } = asked;
    const sender = { trigger: `${pid}/${slug}`, address: request.socket.remoteAddress ?? "" };
    arriving.read(
      request,
      { limitBytes: BODY_LIMIT_BYTES, sender },
      {
        refused: (error) => respond(asked, refusedWith(error), null),
        body: (body, done) =>
          receive(deliveryOf({ pid, slug, headers: request.headers }, body), (answer) => {
            done();
            respond(asked, answer, body.byteLength);
            faults("webhook.answered");
          }),
      },
    );
  };

  const routes: RawRoutes = {
    request: (request, response) => {
      const [, pid = "", slug = ""] = request.method === "POST" ? (PATH.exec(request.url ?? "") ?? []) : [];
      if (pid === "") return false;
      // The listener has seen to it that every escape is whole.
      take({ request, response, pid: decodeURIComponent(pid), slug: decodeURIComponent(slug) });
      return true;
    },
    upgrade: () => false,
  };
  return routes;
});
