/** The events a state change leaves behind, as clients read them (api.md 3): shared by both adapters. */
import type { Failure } from "../domain/failure.ts";
import type { PlannedFire, PlannedSession } from "./admission-plan.ts";
import type { ChangeRequest, StoredEvent } from "./records.ts";

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

const fireEvent = (
  place: Place,
  fire: { readonly type: "trigger.fired" | "fire.queued"; readonly fireId: string; readonly slug: string },
): NewEvent => ({
  ...place,
  type: fire.type,
  data: { fire_id: fire.fireId, trigger_slug: fire.slug },
});

/** The events of an admission or a drain: sessions made, fires fired, fires that wait. */
export const admissionEvents = (
  sessions: readonly PlannedSession[],
  fires: readonly PlannedFire[],
): readonly NewEvent[] => [
  ...sessions.map(({ session, now }) =>
    sessionStatusEvent(
      { projectId: session.projectId, sessionId: session.id, at: now },
      { status: "provisioning", previous: null },
    ),
  ),
  ...fires.flatMap((fire) => {
    const place = {
      projectId: fire.projectId,
      sessionId: fire.sessionId,
      at: fire.firedAt ?? fire.receivedAt,
    };
    const of = { fireId: fire.id, slug: fire.triggerSlug };
    if (fire.status === "fired") return [fireEvent(place, { ...of, type: "trigger.fired" })];
    return fire.status === "queued" ? [fireEvent(place, { ...of, type: "fire.queued" })] : [];
  }),
];

const CHANGE_REQUEST_EVENTS = {
  open: "change_request.opened",
  merged: "change_request.merged",
  closed: "change_request.closed",
} as const;

/** The event of a request that has come to its status just now. */
export const changeRequestEvent = ({
  projectId,
  sessionId,
  updatedAt,
  number,
  status,
}: ChangeRequest): NewEvent => ({
  projectId,
  sessionId,
  at: updatedAt,
  type: CHANGE_REQUEST_EVENTS[status],
  data: { number, status },
});

const failureOf = (failure: Failure | null | undefined) =>
  failure === null || failure === undefined ? null : { code: failure.code, message: failure.message };
