/** The webhook receiver's answers (spec 4.1, 7.1), and the reasons that only a project's people see. */
import * as Cause from "effect/Cause";
import type { Directory } from "../../services/directory.ts";
import { inactivity } from "../../domain/project/deletion.ts";
import type { SignatureRefusal } from "../../domain/trigger/signature.ts";
import { isTriggerSlug, type WebhookTriggerDefinition } from "../../domain/trigger/trigger.ts";
import { StoreError } from "../../store/ports/journal.ts";
import type { AdmissionOf } from "../../store/ports/triggers/admissions.ts";
import type { Fire } from "../../store/ports/triggers/fires.ts";
import {
  BadRequest,
  Conflict,
  internalError,
  NotFound,
  Unauthorized,
  Unavailable,
  type ApiError,
} from "../api/errors.ts";
import { databaseUnavailable, fireFailed } from "../answers/refusals.ts";

/** An answer: an outcome, which is also its name in the counts, or an error. */
export type Answer =
  | { readonly status: 200 | 202; readonly is: string; readonly body: object }
  /** `reason` is never sent to the sender. Null if the ledger has a row with the reason. */
  | { readonly error: ApiError; readonly reason: string | null };

/** Identical for every reason (threats.md W29): unknown, disabled, paused, no webhook trigger, inactive project. */
export const noSuchTrigger = () => new NotFound({ error: "Webhook trigger not found.", code: "not_found" });

/** A restored copy during its pause. The sender tries again. */
export const pausedCopy = () =>
  new Unavailable({
    error: "This installation is a restored copy and is paused. Try again later.",
    code: "paused",
  });

export const badAddress = () =>
  new BadRequest({
    error: "Invalid webhook address. It must be /v1/webhooks/projects/<project id>/<trigger slug>.",
    code: "invalid_webhook_address",
  });

export const notConfigured = ({ secretEnv }: WebhookTriggerDefinition) =>
  new Conflict({
    error: `The trigger's secret ${secretEnv} has no value. Set it in the project's secrets.`,
    code: "secret_not_configured",
  });

const BAD_SIGNATURE =
  "Missing or invalid signature. It must be the HMAC-SHA256 of the body, with the trigger's secret as the key.";
const badSignature = (error = BAD_SIGNATURE) => new Unauthorized({ error, code: "invalid_signature" });

/**
 * The signature fits the secret's value without its invisible characters. A sender that reads this has the value, so it
 * learns nothing new.
 */
export const unseenInSecret = (unseen: readonly string[]): Answer => {
  const cause = `the stored value ${unseen.join(" and ")}`;
  return {
    error: badSignature(
      `Invalid signature: ${cause}, and the sender's does not. Set the secret again without it.`,
    ),
    reason: `signature_mismatched: ${cause}`,
  };
};

/** The sender cannot distinguish the reasons. */
export const notAuthentic = (refusal: SignatureRefusal): Answer => ({
  error: badSignature(),
  reason: `signature_${refusal}`,
});

/** The answer to GitHub's check of the address. */
export const PONG: Answer = { status: 200, is: "pong", body: { status: "pong" } };

const QUEUED = { status: "queued", reason: "account_session_cap" };

type DeliveryAnswer = AdmissionOf<"delivery">;

const presentState = ({ status, sessionId }: Fire): string => {
  if (status === "skipped") return "This delivery was skipped. To run it all the same:";
  return sessionId === null
    ? "This delivery waits for a free session. To run it again once it has started:"
    : "This delivery has its run. To run it again:";
};

/** The answer to a repeated delivery: the present state of the first one, and how to run it again. */
const again = ({ fire }: Extract<DeliveryAnswer, { readonly outcome: "duplicate" }>): Answer => {
  const isSkipped = fire.status === "skipped";
  const outcome = fire.sessionId === null ? QUEUED : { status: "fired", session_id: fire.sessionId };
  return {
    status: isSkipped ? 200 : 202,
    is: "duplicate",
    body: {
      ...(isSkipped ? { status: "skipped", reason: fire.reason } : outcome),
      duplicate: true,
      duplicate_of: fire.id,
      replay: `${presentState(fire)} platform triggers replay ${fire.id}`,
    },
  };
};

export const answerFor = (admission: Exclude<DeliveryAnswer, { readonly outcome: "stale" }>): Answer => {
  switch (admission.outcome) {
    case "admitted":
      return { status: 202, is: "fired", body: { status: "fired", session_id: admission.sessionId } };
    case "queued":
      return { status: 202, is: "queued", body: QUEUED };
    case "skipped":
      return { status: 200, is: admission.reason, body: { status: "skipped", reason: admission.reason } };
    case "duplicate":
      return again(admission);
    case "failed":
      return { error: fireFailed(admission.reason), reason: null };
    case "queue_full":
      return {
        error: new Unavailable({
          error: `The account's queue is full (${admission.limit} fires). Send the delivery again later.`,
          code: "queue_full",
        }),
        reason: "queue_full",
      };
    case "inactive":
      return { error: noSuchTrigger(), reason: "project_archived" };
  }
};

const toApiError = (cause: Cause.Cause<unknown>): ApiError => {
  const error = Cause.squash(cause);
  if (error instanceof StoreError) return databaseUnavailable(error);
  return Cause.hasDies(cause)
    ? internalError()
    : new Unavailable({
        error: "The service is busy with this account. Try again in a moment.",
        code: "busy",
      });
};

/** The code is the whole reason. */
export const refusedWith = (error: ApiError): Answer => ({ error, reason: error.code });

export const failureFor = (cause: Cause.Cause<unknown>): Answer => refusedWith(toApiError(cause));

/** Why no trigger listens at an address, for the people of its project. Looked up after the answer (threats.md W36). */
export const whyNotListening = (directory: Directory["Service"], pid: string, slug: string): string => {
  if (!isTriggerSlug(slug)) return "invalid_webhook_address";
  const entry = directory.known(pid);
  if (entry === null) return "unknown_project";
  const inactive = inactivity(entry.project);
  if (inactive !== null) return inactive;
  if (entry.project.triggersPaused) return "triggers_paused";
  const trigger = entry.triggers.get(slug);
  if (trigger === undefined) {
    return entry.manifest.errors.some((error) => error.slug === slug)
      ? "trigger_in_error"
      : "unknown_trigger";
  }
  if (trigger.type !== "webhook") return "not_a_webhook_trigger";
  return trigger.enabled ? "not_found" : "trigger_disabled";
};
