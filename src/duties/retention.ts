/**
 * Removes expired rows, in small steps: the ledger with its requests (api.md 4), refused webhooks, previous values of
 * secrets, attachments that no message has, uploads that no session has, calls of connectors and their results, the audit record, the history of
 * actors, events (api.md 1).
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Audit } from "../store/ports/audit.ts";
import { Conversations } from "../store/ports/sessions/conversations.ts";
import { Events } from "../store/ports/events.ts";
import { ExecutorCalls } from "../store/ports/connectors/executor-calls.ts";
import { Fires } from "../store/ports/triggers/fires.ts";
import type { StoreError } from "../store/ports/journal.ts";
import { Secrets } from "../store/ports/projects/secrets.ts";
import { Transitions, TRANSITIONS_KEPT, TRANSITIONS_KEPT_MS } from "../store/ports/transitions.ts";
import { REFUSALS_KEPT_MS, WebhookRefusals } from "../store/ports/triggers/webhook-refusals.ts";
import { Uploads } from "../store/ports/sessions/uploads.ts";
import { DUTIES } from "../services/duties.ts";
import { runDuty } from "../services/duty.ts";

export interface RetentionOptions<R = never> {
  /** How long rows are kept, ms (PLATFORM_FIRE_RETENTION_MS). */
  readonly fireRetentionMs: number;
  /** How long the audit record is kept, ms (PLATFORM_AUDIT_RETENTION_MS). */
  readonly auditRetentionMs: number;
  /** A small step that removes what features keep for a time. It says how many rows it removed. */
  readonly features: (now: number) => Effect.Effect<number, StoreError, R>;
}

/** How many bytes of stored requests an account may keep. The oldest go first. */
const REQUEST_BYTES = 2 * 1024 * 1024 * 1024;
/** A call lasts a minute. One without an outcome after this time was cut off with its service. */
const ABANDONED_MS = 5 * 60_000;
/** Pause between two steps, so that pruning a large backlog leaves the database to others. */
const BREATH = "50 millis";

/** Only an actor that moved since the last rounds can have a longer history than is kept. */
const MOVED_WITHIN_MS = 5 * 60_000;

/** Prunes until there is nothing to prune. */
export const prune = Effect.fnUntraced(function* <R>({
  fireRetentionMs,
  auditRetentionMs,
  features,
}: RetentionOptions<R>) {
  const fires = yield* Fires;
  const now = yield* Clock.currentTimeMillis;
  const before = now - fireRetentionMs;
  while ((yield* fires.prune({ before, requestBytes: REQUEST_BYTES })) > 0) yield* Effect.sleep(BREATH);
  const refusals = yield* WebhookRefusals;
  while ((yield* refusals.prune(now - REFUSALS_KEPT_MS)) > 0) yield* Effect.sleep(BREATH);
  const secrets = yield* Secrets;
  while ((yield* secrets.prunePrevious(now)) > 0) yield* Effect.sleep(BREATH);
  const conversations = yield* Conversations;
  while ((yield* conversations.pruneAttachments(now)) > 0) yield* Effect.sleep(BREATH);
  const uploads = yield* Uploads;
  while ((yield* uploads.prune(now)) > 0) yield* Effect.sleep(BREATH);
  const calls = yield* ExecutorCalls;
  yield* calls.abandon(now - ABANDONED_MS, now);
  while ((yield* calls.prune(before)) > 0) yield* Effect.sleep(BREATH);
  while ((yield* features(now)) > 0) yield* Effect.sleep(BREATH);
  const audit = yield* Audit;
  while ((yield* audit.prune(now - auditRetentionMs)) > 0) yield* Effect.sleep(BREATH);
  const transitions = yield* Transitions;
  const history = {
    before: now - TRANSITIONS_KEPT_MS,
    kept: TRANSITIONS_KEPT,
    movedSince: now - MOVED_WITHIN_MS,
  };
  while ((yield* transitions.prune(history)) > 0) yield* Effect.sleep(BREATH);
  yield* (yield* Events).prune(now);
});

export const retentionLayer = <R>(options: RetentionOptions<R>) =>
  Layer.effectDiscard(
    runDuty("retention", {
      round: prune(options),
      first: "a period",
      periodMs: DUTIES.retention.periodMs,
    }),
  );
