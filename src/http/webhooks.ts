/**
 * The webhook receiver (spec 4.1, 5.4, 7.1). The signature is over the body's bytes as they came, and nobody is asked for
 * anything before it was found right: triggers and keys are held in memory (actors/directory.ts). It stands below Effect's
 * router, where a request costs half.
 *
 * Checks in this order (api.md 4 "Webhook"): 400 malformed id or slug, 404 no such listening trigger, 409 no secret, then the
 * body is read and its signature decides 401 or 202. The answer is sent after the fire's row is committed.
 */
import { createHash, type KeyObject } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import { Directory, type KnownProject } from "../actors/directory.ts";
import { Firing, firePrompt } from "../actors/firing.ts";
import { packRequest } from "../actors/stored-request.ts";
import { parseUuid } from "../domain/ids.ts";
import {
  headerText,
  parseWebhookBody,
  webhookVariables,
  type JsonValue,
  type WebhookHeaders,
} from "../domain/prompt.ts";
import { HUB_SIGNATURE_HEADER, PLATFORM_SIGNATURE_HEADER, verifySignature } from "../domain/signature.ts";
import { isTriggerSlug, type WebhookTriggerDefinition } from "../domain/trigger.ts";
import { Faults } from "../store/faults.ts";
import { StoreError } from "../store/journal.ts";
import type { Admission } from "../store/port.ts";
import type { StoredRequest } from "../store/records.ts";
import {
  BadRequest,
  Conflict,
  Internal,
  NotFound,
  Unauthorized,
  Unavailable,
  type ApiError,
} from "./api/errors.ts";
import { makeArriving } from "./arriving.ts";
import { answerError, answerJson } from "./respond.ts";
import type { RawRoutes } from "./server.ts";
import { promptTooLarge } from "./triggers.ts";

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

/** Identical for every reason (threats.md W29): unknown, disabled, paused, no webhook trigger, inactive project. */
const noSuchTrigger = () => new NotFound({ error: "There is no such webhook trigger.", code: "not_found" });

const badAddress = () =>
  new BadRequest({
    error: "The address of a webhook is /v1/webhooks/projects/<project id>/<trigger slug>.",
    code: "invalid_webhook_address",
  });

const notConfigured = ({ secretEnv }: WebhookTriggerDefinition) =>
  new Conflict({
    error: `The secret ${secretEnv} of this trigger is not configured in the project's secrets.`,
    code: "secret_not_configured",
  });

const badSignature = () =>
  new Unauthorized({
    error: "The signature is missing or is not the HMAC-SHA256 of the body under this trigger's secret.",
    code: "invalid_signature",
  });

interface Listening {
  readonly known: KnownProject;
  readonly trigger: WebhookTriggerDefinition;
  readonly key: KeyObject;
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
  const key = known.keys.get(trigger.secretEnv);
  return key === undefined ? Result.fail(notConfigured(trigger)) : Result.succeed({ known, trigger, key });
};

const isAuthentic = (body: Uint8Array, headers: IncomingHttpHeaders, key: KeyObject): boolean =>
  Result.isSuccess(
    verifySignature(
      body,
      { platform: single(headers[PLATFORM_SIGNATURE_HEADER]), hub: single(headers[HUB_SIGNATURE_HEADER]) },
      key,
    ),
  );

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

const QUEUED = { status: "queued", reason: "account_session_cap" };

export type Answer = { readonly body: object } | { readonly error: ApiError };

const answerFor = (admission: Exclude<Admission, { readonly outcome: "stale" }>): Answer => {
  switch (admission.outcome) {
    case "admitted":
      return { body: { status: "fired", session_id: admission.sessionId } };
    case "queued":
      return { body: QUEUED };
    case "duplicate": {
      const { sessionId } = admission.fire;
      const now = sessionId === null ? QUEUED : { status: "fired", session_id: sessionId };
      return { body: { ...now, duplicate: true } };
    }
    case "failed":
      return { error: promptTooLarge() };
    case "queue_full":
      return {
        error: new Unavailable({
          error: `The account's queue is full (${admission.limit} fires); send it again later.`,
          code: "queue_full",
        }),
      };
    case "inactive":
      return { error: noSuchTrigger() };
    case "refused":
      return { error: new Internal({ error: "The fire was refused at the cap.", code: "session_failed" }) };
  }
};

const failureFor = (cause: Cause.Cause<unknown>): ApiError => {
  const error = Cause.squash(cause);
  if (error instanceof StoreError) {
    return new Unavailable({
      error: "The database cannot be reached; try again in a moment.",
      code: "database_unavailable",
    });
  }
  return Cause.hasDies(cause)
    ? new Internal({
        error: "The service failed to answer; the failure is in its log.",
        code: "internal_error",
      })
    : new Unavailable({
        error: "The service is busy with this account; try again in a moment.",
        code: "busy",
      });
};

/** What a sender hears whose trigger was not found after one more look. */
const missError = (cause: Cause.Cause<ApiError | StoreError>): ApiError => {
  const error = Cause.squash(cause);
  return error instanceof NotFound || error instanceof Conflict ? error : failureFor(cause);
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
  return { ...place, body, parsed: () => (parsed ??= parseWebhookBody(body)) };
};

/** Decides a delivery: its signature, what it fires, and the answer after the commit. */
export const makeReceive = Effect.gen(function* () {
  const directory = yield* Directory;
  const firing = yield* Firing;
  const faults = yield* Faults;
  const clock = yield* Clock.Clock;
  const run = Effect.runForkWith(yield* Effect.context());

  const fireOf = (
    { known, trigger }: Listening,
    { headers, parsed }: Delivery,
    request: StoredRequest | null,
  ) => {
    const variables = webhookVariables(trigger, {
      firedAtMs: clock.currentTimeMillisUnsafe(),
      body: parsed(),
      headers: knownHeaders(headers),
    });
    return {
      project: known.project,
      trigger,
      kind: "webhook" as const,
      prompt: firePrompt(trigger.prompt, variables),
      request,
      userId: known.project.createdBy,
      deliveryId: deliveryIdOf(headers),
      scheduledFor: null,
      replayOf: null,
      atCap: "queue" as const,
    };
  };

  /** Looked up again where the body took its time: the trigger may be another than when it began to come. */
  const authentic = ({ pid, slug, headers, body }: Delivery): Result.Result<Listening, ApiError> => {
    const found = listening(directory, pid, slug);
    if (Result.isFailure(found)) return found;
    return isAuthentic(body, headers, found.success.key) ? found : Result.fail(badSignature());
  };

  return (delivery: Delivery, answer: (answer: Answer) => void): void => {
    const decide = (found: Listening, stored: StoredRequest | null, attempt: number): void =>
      firing.offer(fireOf(found, delivery, stored), (exit) => {
        if (Exit.isFailure(exit)) {
          run(Effect.logWarning("a webhook was not taken", exit.cause));
          return answer({ error: failureFor(exit.cause) });
        }
        if (exit.value.outcome !== "stale") return answer(answerFor(exit.value));
        if (attempt >= STALE_MAX) return answer({ error: failureFor(Cause.fail("stale")) });
        const again = Effect.sync(() => {
          const now = authentic(delivery);
          if (Result.isFailure(now)) answer({ error: now.failure });
          else decide(now.success, stored, attempt + 1);
        });
        run(Effect.andThen(Effect.ignore(directory.refresh(delivery.pid)), again));
      });
    const found = authentic(delivery);
    if (Result.isFailure(found)) return answer({ error: found.failure });
    faults("webhook.verified");
    const headers = storedHeaders(knownHeaders(delivery.headers));
    packRequest(delivery.body, headers, (stored) => decide(found.success, stored, 1));
  };
});

/** The receiver's raw route, for the listener; it lives as long as the scope. */
export const makeReceiver = Effect.gen(function* () {
  const directory = yield* Directory;
  const faults = yield* Faults;
  const arriving = yield* makeArriving;
  const receive = yield* makeReceive;
  const run = Effect.runForkWith(yield* Effect.context());
  let missing = 0;

  /** What listens there by now. Another node may just have made it, so a miss is looked up once. */
  const lookedUp = Effect.fnUntraced(function* (pid: string, slug: string) {
    yield* directory.caughtUp;
    return yield* Effect.fromResult(listening(directory, pid, slug));
  });

  const take = (
    request: IncomingMessage,
    response: ServerResponse,
    [pid, slug]: readonly [string, string],
  ) => {
    const found = listening(directory, pid, slug);
    if (Result.isSuccess(found)) return read(request, response, [pid, slug]);
    const { failure: error } = found;
    if (error instanceof BadRequest || missing >= MISSING_MAX) return answerError(response, error);
    missing += 1;
    run(lookedUp(pid, slug)).addObserver((exit) => {
      missing -= 1;
      if (Exit.isSuccess(exit)) read(request, response, [pid, slug]);
      else answerError(response, missError(exit.cause));
    });
  };

  const read = (
    request: IncomingMessage,
    response: ServerResponse,
    [pid, slug]: readonly [string, string],
  ) => {
    const sender = { trigger: `${pid}/${slug}`, address: request.socket.remoteAddress ?? "" };
    arriving.read(
      request,
      { limitBytes: BODY_LIMIT_BYTES, sender },
      {
        refused: (error) => answerError(response, error),
        body: (body, done) =>
          receive(deliveryOf({ pid, slug, headers: request.headers }, body), (answer) => {
            done();
            if ("error" in answer) answerError(response, answer.error);
            else answerJson(response, 202, answer);
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
      take(request, response, [decodeURIComponent(pid), decodeURIComponent(slug)]);
      return true;
    },
    upgrade: () => false,
  };
  return routes;
});
