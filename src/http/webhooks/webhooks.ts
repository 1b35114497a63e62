/**
 * The webhook receiver (spec 4.1, 5.4, 7.1). The signature covers the raw bytes of the body. Until it is verified, triggers
 * and keys come from memory. Only for an address that memory does not know, it waits for one look at the database, which all such
 * callers share (services/directory.ts Y4). It works below Effect's router, where a request costs half.
 *
 * Checks in this order (api.md 4 "Webhook"): 400 malformed id or slug, 404 no listening trigger, 409 no secret. Then
 * the body is read, and a wrong signature gives 401. An authentic delivery gets 200 if it is a ping, does not match the
 * trigger's filter, tells of a deletion or of an act of the service itself, otherwise 202. The answer is sent after the fire's row is committed. A refusal is recorded
 * after its answer.
 */
import { createHash, type KeyObject } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import { Directory, type KnownProject, type SigningKeys } from "../../services/directory.ts";
import { Firing, fireWords, type FireRequest } from "../../services/triggers/firing.ts";
import { confirmedSkip, skipSuspicions } from "../../services/triggers/own-events.ts";
import { packRequest } from "../../services/triggers/stored-request.ts";
import { WebhookRecord } from "../../services/triggers/webhook-record.ts";
import type { TrustedProxies } from "../../domain/person/client-address.ts";
import { parseUuid } from "../../domain/ids.ts";
import {
  headerText,
  parseWebhookBody,
  webhookVariables,
  type JsonValue,
  type WebhookHeaders,
} from "../../domain/trigger/prompt.ts";
import {
  HUB_SIGNATURE_HEADER,
  PLATFORM_SIGNATURE_HEADER,
  verifySignature,
} from "../../domain/trigger/signature.ts";
import { isTriggerSlug, type WebhookTriggerDefinition } from "../../domain/trigger/trigger.ts";
import { eventName, isPing } from "../../domain/trigger/webhook-event.ts";
import { isFiltered } from "../../domain/trigger/webhook-filter.ts";
import { Pause } from "../../ground/pause.ts";
import { Faults } from "../../store/ports/faults.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import type { StoredRequest, VerifiedWith } from "../../store/ports/triggers/fires.ts";
import type { ProposedWork } from "../../services/sessions/proposed-work.ts";
import type { Sessions } from "../../store/ports/sessions/sessions.ts";
import { rawClientAddress, Proxies } from "../callers/acting.ts";
import { BadRequest, Conflict, NotFound, errorStatus, type ApiError } from "../api/errors.ts";
import { makeArriving } from "../reading/arriving.ts";
import { answerError, answerJson } from "../answers/respond.ts";
import type { RawRoutes } from "../server.ts";
import {
  answerFor,
  badAddress,
  failureFor,
  noSuchTrigger,
  notAuthentic,
  pausedCopy,
  notConfigured,
  PONG,
  refusedWith,
  unseenInSecret,
  whyNotListening,
  type Answer,
} from "./webhook-answers.ts";

/** GitHub's own maximum. */
const BODY_LIMIT_BYTES = 25 * 1024 * 1024;
/** Delivery ids are short opaque strings. A longer one is stored as its hash, which still identifies the delivery. */
const DELIVERY_ID_MAX = 200;
/** The first header present names the delivery (api.md 4). */
const DELIVERY_HEADERS = ["x-platform-delivery", "x-github-delivery", "webhook-id", "x-gitlab-event-uuid"];
/** How often a fire is decided again because its project changed meanwhile. */
const STALE_MAX = 5;

/** How many requests may wait for one more look at the directory. Any more are answered immediately. */
const MISSING_MAX = 256;

const PATH = /^\/v1\/webhooks\/projects\/([^/?#]+)\/([^/?#]*)(?:\?.*)?$/s;

interface Listening {
  readonly known: KnownProject;
  readonly trigger: WebhookTriggerDefinition;
  readonly keys: SigningKeys;
}

/** The trigger at the address, from memory. */
const listening = (
  directory: Directory["Service"],
  pid: string,
  slug: string,
): Result.Result<Listening, ApiError> => {
  if (parseUuid(pid) === null || !isTriggerSlug(slug)) return Result.fail(badAddress());
  const entry = directory.known(pid);
  if (entry === null || entry.project.status !== "active" || entry.project.triggersPaused) {
    return Result.fail(noSuchTrigger());
  }
  const trigger = entry.triggers.get(slug);
  if (trigger?.type !== "webhook" || !trigger.enabled) return Result.fail(noSuchTrigger());
  const keys = entry.keys.get(trigger.secretEnv);
  return keys === undefined
    ? Result.fail(notConfigured(trigger))
    : Result.succeed({ known: entry, trigger, keys });
};

/** Which of a secret's values signed the body. The previous value counts until its instant. */
const verifiedWith = (
  { body, headers }: Delivery,
  { current, previous, seen }: SigningKeys,
  now: number,
): Result.Result<VerifiedWith, Answer> => {
  const signatures = {
    platform: single(headers[PLATFORM_SIGNATURE_HEADER]),
    hub: single(headers[HUB_SIGNATURE_HEADER]),
  };
  const verification = verifySignature(body, signatures, current);
  if (Result.isSuccess(verification)) return Result.succeed("current");
  const fits = (key: KeyObject) => Result.isSuccess(verifySignature(body, signatures, key));
  if (verification.failure === "mismatched") {
    if (previous !== null && previous.until > now && fits(previous.key)) return Result.succeed("previous");
    if (seen !== null && fits(seen.key)) return Result.fail(unseenInSecret(seen.unseen));
  }
  return Result.fail(notAuthentic(verification.failure));
};

/** Node never gives a list for these headers, although its type allows one. */
const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(", ") : value;

/** The three headers that templates can use. */
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
const readDeliveryId = (headers: IncomingHttpHeaders): string | null => {
  const id = DELIVERY_HEADERS.map((name) => single(headers[name])).find(
    (value) => value !== undefined && value !== "",
  );
  if (id === undefined) return null;
  return id.length > DELIVERY_ID_MAX ? createHash("sha256").update(id).digest("hex") : id;
};

/** A delivery with its complete body. */
interface Delivery {
  readonly pid: string;
  readonly slug: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
  /** The body as templates see it, parsed on first use. */
  readonly parsed: () => JsonValue;
}

export const readDelivery = (
  place: Pick<Delivery, "pid" | "slug" | "headers">,
  body: Uint8Array,
): Delivery => {
  let parsed: JsonValue | undefined;
  const { "content-type": contentType } = place.headers;
  return { ...place, body, parsed: () => (parsed ??= parseWebhookBody(body, contentType)) };
};

/** A delivery with a verified signature. */
interface Authentic extends Listening {
  readonly verifiedWith: VerifiedWith;
}

/** The fire of a delivery, as far as it is known without the database. */
const toFire = (
  { known, trigger, verifiedWith: value }: Authentic,
  { headers, parsed }: Delivery,
  { request, now }: { readonly request: StoredRequest | null; readonly now: number },
): FireRequest & { readonly by: "delivery" } => {
  const variables = webhookVariables(trigger, {
    firedAtMs: now,
    body: parsed(),
    headers: knownHeaders(headers),
  });
  const isOut = isFiltered(trigger.filter, { headers, body: parsed(), variables });
  // A delivery that does not fire is not rendered.
  const words = isOut
    ? { prompt: { is: "skipped", reason: "filtered" } as const, title: trigger.name }
    : fireWords(trigger, variables);
  return {
    project: known.project,
    trigger,
    kind: "webhook",
    ...words,
    request,
    userId: known.project.createdBy,
    deliveryId: readDeliveryId(headers),
    verifiedWith: value,
    scheduledFor: null,
    replayOf: null,
    by: "delivery",
  };
};

/** Decides a delivery: its signature, its fire, and the answer after the commit. */
export const makeReceive = Effect.gen(function* () {
  const directory = yield* Directory;
  const firing = yield* Firing;
  const faults = yield* Faults;
  const clock = yield* Clock.Clock;
  const run = Effect.runForkWith(yield* Effect.context<ProposedWork | Sessions>());

  /** Looked up again, because the trigger may have changed while the body arrived. */
  const authentic = (delivery: Delivery): Result.Result<Authentic, Answer> => {
    const { pid, slug } = delivery;
    const trigger = listening(directory, pid, slug);
    if (Result.isFailure(trigger)) return Result.fail(refusedWith(trigger.failure));
    const verification = verifiedWith(delivery, trigger.success.keys, clock.currentTimeMillisUnsafe());
    return Result.isSuccess(verification)
      ? Result.succeed({ ...trigger.success, verifiedWith: verification.success })
      : Result.fail(verification.failure);
  };

  return (delivery: Delivery, answer: (answer: Answer) => void): void => {
    const answerFailure = (cause: Cause.Cause<unknown>): void => {
      run(Effect.logWarning("a webhook delivery failed", cause));
      answer(failureFor(cause));
    };
    const decide = (target: Authentic, request: StoredRequest | null, attempt: number): void => {
      const fire = toFire(target, delivery, { request: request, now: clock.currentTimeMillisUnsafe() });
      const { headers, parsed } = delivery;
      const suspicions =
        fire.prompt.is === "skipped" ? [] : skipSuspicions(target.trigger, { headers, body: parsed() });
      const offer = (order: typeof fire): void =>
        firing.offer(order, (exit) => {
          if (Exit.isFailure(exit)) return answerFailure(exit.cause);
          if (exit.value.outcome !== "stale") return answer(answerFor(exit.value));
          if (attempt >= STALE_MAX) return answer(failureFor(Cause.fail("stale")));
          const again = Effect.sync(() => {
            const now = authentic(delivery);
            if (Result.isFailure(now)) answer(now.failure);
            else decide(now.success, request, attempt + 1);
          });
          run(Effect.andThen(Effect.ignore(directory.refresh(delivery.pid)), again));
        });
      if (suspicions.length === 0) return offer(fire);
      run(confirmedSkip(fire.project.id, suspicions)).addObserver((exit) => {
        if (Exit.isFailure(exit)) return answerFailure(exit.cause);
        const { value: reason } = exit;
        offer(reason === null ? fire : { ...fire, prompt: { is: "skipped", reason } });
      });
    };
    const authentication = authentic(delivery);
    if (Result.isFailure(authentication)) return answer(authentication.failure);
    if (isPing(delivery.headers)) return answer(PONG);
    faults("webhook.verified");
    const headers = storedHeaders(knownHeaders(delivery.headers));
    packRequest(delivery.body, headers, (request) => decide(authentication.success, request, 1));
  };
});

/** The longest sender's text that is stored with a refusal. */
const KEPT_LENGTH = 200;
const SLUG_KEPT_LENGTH = 128;
const storedText = (text: string | undefined | null): string | null =>
  text === undefined || text === null || text === "" ? null : headerText(text.slice(0, KEPT_LENGTH));

interface Refused {
  /** Null if the body was not read. */
  readonly bodyBytes: number | null;
  readonly proxies: TrustedProxies;
}

/** The stored part of a refused request: no body, no signature. */
const toRefusal = (request: IncomingMessage, { bodyBytes, proxies }: Refused) => {
  const { headers } = request;
  const declaredBytes = Number(headers["content-length"] ?? Number.NaN);
  return {
    deliveryId: storedText(readDeliveryId(headers)),
    event: storedText(eventName(headers)),
    declaredBytes: Number.isSafeInteger(declaredBytes) ? declaredBytes : null,
    bodyBytes,
    address: rawClientAddress(request, proxies) ?? "",
    forwardedFor: storedText(single(headers["x-forwarded-for"])),
  };
};

/** The answer to a sender whose trigger was not found even after one more look. */
const missAnswer = (cause: Cause.Cause<ApiError | StoreError>): Answer => {
  const error = Cause.squash(cause);
  return error instanceof NotFound || error instanceof Conflict ? refusedWith(error) : failureFor(cause);
};

interface Arrival {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly pid: string;
  readonly slug: string;
}

const NOT_FOUND = 404;

interface Recording {
  readonly directory: Directory["Service"];
  readonly record: WebhookRecord["Service"];
  readonly proxies: TrustedProxies;
}

/** Answers, then records (threats.md W36). `bodyBytes`: null if the body was not read. */
const responder =
  ({ directory, record, proxies }: Recording) =>
  ({ request, response, pid, slug }: Arrival, answer: Answer, bodyBytes: number | null): void => {
    if (!("error" in answer)) {
      answerJson(response, answer.status, answer);
      return record.answered(answer.status, answer.is);
    }
    const { error, reason } = answer;
    const status = errorStatus(error);
    answerError(response, error);
    record.answered(status, error.code);
    if (reason === null) return;
    record.refused({
      ...toRefusal(request, { bodyBytes, proxies }),
      projectId: pid,
      slug: headerText(slug.slice(0, SLUG_KEPT_LENGTH)),
      status,
      code: error.code,
      reason: reason === error.code && status === NOT_FOUND ? whyNotListening(directory, pid, slug) : reason,
    });
  };

/** The receiver's raw route, for the listener. It lives as long as the scope. */
export const makeReceiver = Effect.gen(function* () {
  const directory = yield* Directory;
  const faults = yield* Faults;
  const arriving = yield* makeArriving;
  const receive = yield* makeReceive;
  const proxies = yield* Proxies;
  const respond = responder({ directory, record: yield* WebhookRecord, proxies });
  const run = Effect.runForkWith(yield* Effect.context());
  const pause = yield* Pause;
  let missing = 0;

  /** The trigger at the address after one more look: another node may just have created it. */
  const lookedUp = Effect.fnUntraced(function* (pid: string, slug: string) {
    yield* directory.caughtUp;
    return yield* Effect.fromResult(listening(directory, pid, slug));
  });

  const take = (arrival: Arrival) => {
    const { pid, slug } = arrival;
    if (pause.isOn) return respond(arrival, refusedWith(pausedCopy()), null);
    const trigger = listening(directory, pid, slug);
    if (Result.isSuccess(trigger)) return read(arrival);
    const { failure: error } = trigger;
    if (error instanceof BadRequest || missing >= MISSING_MAX)
      return respond(arrival, refusedWith(error), null);
    missing += 1;
    run(lookedUp(pid, slug)).addObserver((exit) => {
      missing -= 1;
      if (Exit.isSuccess(exit)) read(arrival);
      else respond(arrival, missAnswer(exit.cause), null);
    });
  };

  const read = (arrival: Arrival) => {
    const { request, pid, slug } = arrival;
    const sender = { trigger: `${pid}/${slug}`, address: rawClientAddress(request, proxies) ?? "" };
    arriving.read(
      request,
      { limitBytes: BODY_LIMIT_BYTES, sender },
      {
        refused: (error) => respond(arrival, refusedWith(error), null),
        body: (body, done) =>
          receive(readDelivery({ pid, slug, headers: request.headers }, body), (answer) => {
            done();
            respond(arrival, answer, body.byteLength);
            faults("webhook.answered");
          }),
      },
    );
  };

  const routes: RawRoutes = {
    request: (request, response) => {
      const [, pid = "", slug = ""] = request.method === "POST" ? (PATH.exec(request.url ?? "") ?? []) : [];
      if (pid === "") return false;
      // The listener has checked that every escape is complete.
      take({ request, response, pid: decodeURIComponent(pid), slug: decodeURIComponent(slug) });
      return true;
    },
    upgrade: () => false,
  };
  return routes;
});
