/**
 * The webhook receiver (spec 4.1, 5.4, 7.1). A raw route: the signature is over the body's bytes as they came.
 *
 * Checks in this order (api.md 4 "Webhook"): 400 malformed id or slug, 404 no such listening trigger, 409 no secret,
 * then the body is read and its signature decides 401 or 202. The answer is sent after the fire's row is committed.
 */
import { createHash } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import { Firing } from "../actors/firing.ts";
import { Keyring } from "../actors/keyring.ts";
import { Manifests } from "../actors/manifests.ts";
import { parseUuid } from "../domain/ids.ts";
import { parseWebhookBody, webhookVariables } from "../domain/prompt.ts";
import { unsealSecret } from "../domain/secret.ts";
import {
  HUB_SIGNATURE_HEADER,
  PLATFORM_SIGNATURE_HEADER,
  signatureKey,
  verifySignature,
} from "../domain/signature.ts";
import { isTriggerSlug, type WebhookTriggerDefinition } from "../domain/trigger.ts";
import { Projects, Secrets, type Admission } from "../store/port.ts";
import type { Project } from "../store/records.ts";
import { BadRequest, Conflict, Internal, NotFound, Unauthorized, Unavailable } from "./api/errors.ts";
import { answering } from "./answers.ts";
import { readAccounted } from "./body.ts";
import { apiErrorResponse } from "./respond.ts";
import { promptTooLarge } from "./triggers.ts";

/** GitHub's own maximum. */
const BODY_LIMIT_BYTES = 25 * 1024 * 1024;
/** Delivery ids are short opaque strings; a longer one is kept as its hash, so that it still tells deliveries apart. */
const DELIVERY_ID_MAX = 200;
/** The first present names the delivery (api.md 4). */
const DELIVERY_HEADERS = ["x-platform-delivery", "x-github-delivery", "webhook-id", "x-gitlab-event-uuid"];

/** Identical for every reason (threats.md W29): unknown, disabled, paused, no webhook trigger, inactive project. */
const noSuchTrigger = () => new NotFound({ error: "There is no such webhook trigger.", code: "not_found" });

const receive = Effect.gen(function* () {
  const { params } = yield* HttpRouter.RouteContext;
  const request = yield* HttpServerRequest.HttpServerRequest;
  const { project, trigger } = yield* listeningTrigger(params["pid"] ?? "", params["slug"] ?? "");
  const key = yield* secretKeyOf(project, trigger);
  const body = yield* readAccounted(request, {
    limitBytes: BODY_LIMIT_BYTES,
    sender: {
      trigger: `${project.id}/${trigger.slug}`,
      address: request.remoteAddress._tag === "Some" ? request.remoteAddress.value : "",
    },
  });
  const signatures = {
    platform: request.headers[PLATFORM_SIGNATURE_HEADER],
    hub: request.headers[HUB_SIGNATURE_HEADER],
  };
  if (Result.isFailure(verifySignature(body, signatures, key))) {
    return yield* new Unauthorized({
      error: "The signature is missing or is not the HMAC-SHA256 of the body under this trigger's secret.",
      code: "invalid_signature",
    });
  }
  return answerFor(yield* fireFor(project, trigger, { request, body }));
});

const listeningTrigger = Effect.fnUntraced(function* (pid: string, slug: string) {
  if (parseUuid(pid) === null || !isTriggerSlug(slug)) {
    return yield* new BadRequest({
      error: "The address of a webhook is /v1/webhooks/projects/<project id>/<trigger slug>.",
      code: "invalid_webhook_address",
    });
  }
  const project = yield* (yield* Projects).get(pid);
  if (project === null || project.status !== "active" || project.triggersPaused)
    return yield* noSuchTrigger();
  const { triggers } = yield* (yield* Manifests).current(project);
  const trigger = triggers.find((candidate) => candidate.slug === slug);
  if (trigger === undefined || trigger.type !== "webhook" || !trigger.enabled) return yield* noSuchTrigger();
  return { project, trigger };
});

const secretKeyOf = Effect.fnUntraced(function* (project: Project, trigger: WebhookTriggerDefinition) {
  const sealed = yield* (yield* Secrets).get(project.id, trigger.secretEnv);
  const keyring = yield* Keyring;
  const value = sealed === null ? null : unsealSecret(keyring.secrets, sealed, sealed.envelope);
  const key = value === null || Result.isFailure(value) ? null : signatureKey(value.success);
  return (
    key ??
    (yield* new Conflict({
      error: `The secret ${trigger.secretEnv} of this trigger is not configured in the project's secrets.`,
      code: "secret_not_configured",
    }))
  );
});

interface Delivery {
  readonly request: HttpServerRequest.HttpServerRequest;
  readonly body: Uint8Array;
}

const fireFor = Effect.fnUntraced(function* (
  project: Project,
  trigger: WebhookTriggerDefinition,
  { request, body }: Delivery,
) {
  const { headers } = request;
  const variables = webhookVariables(trigger, {
    firedAtMs: yield* Clock.currentTimeMillis,
    body: parseWebhookBody(body),
    headers: {
      contentType: headers["content-type"],
      userAgent: headers["user-agent"],
      forwardedFor: headers["x-forwarded-for"],
    },
  });
  return yield* (yield* Firing).fire({
    project,
    trigger,
    kind: "webhook",
    variables,
    userId: project.createdBy,
    deliveryId: deliveryIdOf(headers),
    scheduledFor: null,
    atCap: "queue",
  });
});

/** An empty header names no delivery. */
const deliveryIdOf = (headers: Readonly<Record<string, string | undefined>>): string | null => {
  const id = DELIVERY_HEADERS.map((name) => headers[name]).find(
    (value) => value !== undefined && value !== "",
  );
  if (id === undefined) return null;
  return id.length > DELIVERY_ID_MAX ? createHash("sha256").update(id).digest("hex") : id;
};

const QUEUED = { status: "queued", reason: "account_session_cap" };

const accepted = (body: object) => HttpServerResponse.jsonUnsafe(body, { status: 202 });

const answerFor = (admission: Admission): HttpServerResponse.HttpServerResponse => {
  switch (admission.outcome) {
    case "admitted":
      return accepted({ status: "fired", session_id: admission.sessionId });
    case "queued":
      return accepted(QUEUED);
    case "duplicate":
      return accepted({
        ...(admission.fire.sessionId === null
          ? QUEUED
          : { status: "fired", session_id: admission.fire.sessionId }),
        duplicate: true,
      });
    case "queue_full":
      return apiErrorResponse(
        new Unavailable({
          error: `The account's queue is full (${admission.limit} fires); send it again later.`,
          code: "queue_full",
        }),
      );
    case "inactive":
      return apiErrorResponse(noSuchTrigger());
    case "refused":
      return apiErrorResponse(
        new Internal({ error: "The fire was refused at the cap.", code: "session_failed" }),
      );
  }
};

/** `POST /v1/webhooks/projects/<project_id>/<slug>`. */
export const webhookRoute = HttpRouter.add(
  "POST",
  "/v1/webhooks/projects/:pid/:slug",
  answering(receive).pipe(
    Effect.catchTag("PromptTooLarge", (error) => Effect.succeed(apiErrorResponse(promptTooLarge(error)))),
    Effect.catch((error) => Effect.succeed(apiErrorResponse(error))),
  ),
);
