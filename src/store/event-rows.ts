/** The events a state change leaves behind, as clients read them (api.md 3): shared by both adapters. */
import type { Failure } from "../domain/failure.ts";
import type { StoredEvent } from "./records.ts";

export type NewEvent = Omit<StoredEvent, "cursor">;

interface Place {
  readonly projectId: string;
  readonly sessionId: string | null;
  readonly at: number;
}

export const sessionStatusEvent = (
  place: Place,
  change: {
    readonly status: string;
    readonly previous: string | null;
    readonly failure?: Failure | null;
    readonly stopReason?: string | null;
  },
): NewEvent => ({
  ...place,
  type: "session.status",
  data: {
    status: change.status,
    previous: change.previous,
    failure: failureOf(change.failure),
    stop_reason: change.stopReason ?? null,
  },
});

export const sandboxStatusEvent = (
  place: Place,
  change: {
    readonly sandboxId: string;
    readonly status: string;
    readonly previous: string | null;
    readonly failure?: Failure | null;
  },
): NewEvent => ({
  ...place,
  type: "sandbox.status",
  data: {
    sandbox_id: change.sandboxId,
    status: change.status,
    previous: change.previous,
    failure: failureOf(change.failure),
  },
});

export const fireEvent = (
  place: Place,
  fire: { readonly type: "trigger.fired" | "fire.queued"; readonly fireId: string; readonly slug: string },
): NewEvent => ({
  ...place,
  type: fire.type,
  data: { fire_id: fire.fireId, trigger_slug: fire.slug },
});

export const changeRequestEvent = (
  place: Place,
  request: { readonly number: number; readonly status: string },
): NewEvent => ({
  ...place,
  type: "change_request.opened",
  data: { number: request.number, status: request.status },
});

const failureOf = (failure: Failure | null | undefined) =>
  failure === null || failure === undefined ? null : { code: failure.code, message: failure.message };
