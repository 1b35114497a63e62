/** A person's request for a session that waits at the account's cap (api.md 4 "Queue"). */
import * as Effect from "effect/Effect";
import { newUuid } from "../../../services/entropy.ts";
import type { AdmissionOf, RequestWish } from "../../../store/ports/triggers/admissions.ts";
import { Fires } from "../../../store/ports/triggers/fires.ts";
import type { NewSession } from "../../../store/ports/sessions/sessions.ts";
import type { QueuedSession } from "../../api/sessions/sessions.ts";
import { Unavailable } from "../../api/errors.ts";
import { Limits } from "../../limits.ts";
import { instant } from "../wire.ts";

/** @param now ms since the epoch */
export const requestFor = Effect.fnUntraced(function* (session: NewSession, now: number) {
  const { queueTtlMs, queueMax } = yield* Limits;
  const { accountId, projectId } = session;
  const wish: RequestWish = {
    kind: "request",
    session,
    fire: {
      id: yield* newUuid,
      accountId,
      projectId,
      triggerSlug: null,
      kind: "session",
      scheduledFor: null,
      receivedAt: now,
      deliveryId: null,
      replayOf: null,
      prompt: { is: "own" },
      request: null,
      queueTtlMs,
      queueMax,
    },
    projectVersion: null,
    now,
  };
  return wish;
});

type Queued = Extract<AdmissionOf<"request">, { readonly outcome: "queued" }>;

/** The answer to a request that waits. It may have started since: then its place was the first. */
export const queuedWire = Effect.fnUntraced(function* (accountId: string, { fireId, expiresAt }: Queued) {
  const position = (yield* (yield* Fires).position(accountId, fireId)) ?? 1;
  const body: typeof QueuedSession.Encoded = {
    status: "queued",
    queue_id: fireId,
    position,
    expires_at: instant(expiresAt),
  };
  return body;
});

export const queueFull = ({ limit }: { readonly limit: number }) =>
  new Unavailable({
    error: `All sessions of the account are in use, and its queue is full (${limit}). Try again later.`,
    code: "queue_full",
  });
