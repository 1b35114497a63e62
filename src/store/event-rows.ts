/** The events that a state change causes, as clients read them (api.md 3). Both adapters use them. */
import type { Failure } from "../domain/session/failure.ts";
import type { FireStatus } from "../domain/trigger/fire.ts";
import type { LastTurn } from "../domain/session/last-turn.ts";
import { countLeft, type Saved } from "../domain/save/saved.ts";
import type { StopReason } from "../domain/session/session.ts";
import type { PlannedEntry, PlannedFire, PlannedSession } from "./admission/plan.ts";
import type { NewEvent } from "./ports/events.ts";
import type { Fire } from "./ports/triggers/fires.ts";
import type { WebhookRefusal } from "./ports/triggers/webhook-refusals.ts";
import type { EndedTurn } from "./ports/sessions/sessions.ts";
import type { ChangedConversation, Conversation } from "./ports/sessions/conversations.ts";
import type { NewRequest } from "./conversations/notes.ts";

interface Place {
  readonly projectId: string;
  readonly sessionId: string | null;
  readonly at: number;
}

/** An event without its project and session, for a statement that reads both. */
export type PlacelessEvent = Omit<NewEvent, "projectId" | "sessionId">;

/** With or without a project and session. */
type Instant = Pick<Place, "at">;

export const sessionStatusEvent = <P extends Instant>(
  place: P,
  change: {
    readonly status: string;
    readonly previous: string | null;
    readonly failure?: Failure | null;
    readonly stopReason?: string | null;
  },
) => ({
  ...place,
  type: "session.status",
  data: {
    status: change.status,
    previous: change.previous,
    failure: failureFields(change.failure),
    stop_reason: change.stopReason ?? null,
  },
});

/** A turn of the session's agent ended. */
export const sessionTurnEvent = (place: Place, { state, error, at }: LastTurn): NewEvent => ({
  ...place,
  type: "session.turn",
  data: { state, error, at },
});

/** A save of the session has more than before. */
export const sessionSavedEvent = (place: Place, { state, at, files, commits, pending }: Saved): NewEvent => ({
  ...place,
  type: "session.saved",
  data: { state, at, files, commits, pending: countLeft(pending) },
});

/** What a list shows of the session changed: its name, its metadata, whether it is archived, or the size of its work. */
export const sessionUpdatedEvent = <P extends Instant>(place: P) => ({
  ...place,
  type: "session.updated",
  data: {},
});

export const sessionDeletedEvent = <P extends Instant>(place: P) => ({
  ...place,
  type: "session.deleted",
  data: {},
});

/** The agent works, asks a person, or rests. A write that leaves the turn's state as it was has no event. */
export const turnChangedEvents = (
  place: Place,
  before: Conversation,
  { conversation: { turn } }: ChangedConversation,
): readonly NewEvent[] =>
  turn.state === before.turn.state
    ? []
    : [{ ...place, type: "session.turn_changed", data: { state: turn.state, previous: before.turn.state } }];

/** Not everything of a session that was to end could be saved. `stays`: its sandbox stays, and the service tries again. */
export interface UnsavedNews {
  readonly reason: StopReason;
  readonly pending: number;
  readonly stays: boolean;
}

export const workUnsavedEvent = <P extends Instant>(place: P, { reason, pending, stays }: UnsavedNews) => ({
  ...place,
  type: "session.work_unsaved",
  data: { reason, pending, stays },
});

/**
 * A turn of the session's agent ended, and the agent rests.
 *
 * @param of the session's name, else its trigger's slug, else null; and the number of its newest open change request
 */
export const sessionTurnEndedEvent = (
  place: Place,
  { number, conversation, state, error }: EndedTurn,
  of: { readonly name: string | null; readonly changeRequest: number | null },
): NewEvent => ({
  ...place,
  type: "session.turn_ended",
  data: {
    state,
    code: error?.code ?? null,
    turn: number,
    turn_id: conversation?.message_id ?? null,
    session_name: of.name,
    change_request: of.changeRequest,
  },
});

export const sandboxStatusEvent = <P extends Instant>(
  place: P,
  change: {
    readonly sandboxId: string;
    readonly status: string;
    readonly previous: string | null;
    readonly failure?: Failure | null;
  },
) => ({
  ...place,
  type: "sandbox.status",
  data: {
    sandbox_id: change.sandboxId,
    status: change.status,
    previous: change.previous,
    failure: failureFields(change.failure),
  },
});

/** A sandbox got its place and boots. */
export const bootStartedEvent = <P extends Instant>(place: P, sandboxId: string) => ({
  ...place,
  type: "sandbox.boot_started",
  data: { sandbox_id: sandboxId },
});

/** A sandbox has its environment, or waits for its build. */
export const environmentNotedEvent = <P extends Instant>(
  place: P,
  { id, buildId, isStale }: { readonly id: string; readonly buildId: string; readonly isStale: boolean },
) => ({
  ...place,
  type: "sandbox.environment",
  data: { sandbox_id: id, build_id: buildId, is_stale: isStale },
});

/** The event of each fire status. Repeated deliveries and skipped instants cause no event: the ledger lists them. */
const FIRE_EVENTS: Partial<Record<FireStatus, string>> = {
  fired: "trigger.fired",
  queued: "fire.queued",
  failed: "fire.failed",
  expired: "fire.expired",
  cancelled: "fire.cancelled",
};

/** A fire, with the id of the person whose request waited. */
export interface EventFire extends Fire {
  readonly requestedBy?: string | null;
}

const requester = (id: string | null | undefined) => (id == null ? {} : { requested_by: id });

/** The events of ledger rows that reached their status at `at`. The session of a person's request has its own event. */
export const fireEvents = (fires: readonly EventFire[], at: number): readonly NewEvent[] =>
  fires.flatMap((fire) => {
    const type = FIRE_EVENTS[fire.status];
    if (type === undefined || (fire.kind === "session" && fire.status === "fired")) return [];
    const reason = fire.reason === null ? {} : { reason: fire.reason };
    const data = {
      fire_id: fire.id,
      trigger_slug: fire.triggerSlug,
      ...reason,
      ...requester(fire.requestedBy),
    };
    return [{ type, at, projectId: fire.projectId, sessionId: fire.sessionId, data }];
  });

/** The events of an admission or a drain: new sessions, started fires, waiting fires, a queue that is full now. */
export const admissionEvents = ({
  sessions,
  fires,
  queue,
}: {
  readonly sessions: readonly PlannedSession[];
  readonly fires: readonly PlannedFire[];
  readonly queue: readonly PlannedEntry[];
}): readonly NewEvent[] => [
  ...sessions.map(({ session, now }) =>
    sessionStatusEvent(
      { projectId: session.projectId, sessionId: session.id, at: now },
      { status: "provisioning", previous: null },
    ),
  ),
  ...fires.flatMap((fire) => fireEvents([fire], fire.decidedAt)),
  ...queue.flatMap((entry) => (entry.fills === null ? [] : [queueFullEvent(entry, entry.fills)])),
];

/** A fire took the last place of its account's queue. */
const queueFullEvent = (
  { fire: { id, projectId, triggerSlug, kind }, session, queuedAt }: PlannedEntry,
  limit: number,
): NewEvent => ({
  projectId,
  sessionId: null,
  at: queuedAt,
  type: "queue.full",
  data: {
    fire_id: id,
    trigger_slug: triggerSlug,
    limit,
    ...requester(kind === "session" ? session.createdBy : null),
  },
});

/** The agent has begun to ask a person. */
export const sessionWaitingEvent = (place: Place, { id, reason }: NewRequest): NewEvent => ({
  ...place,
  type: "session.waiting",
  data: { request_id: id, reason },
});

/** The newest manifest cannot be read. The reading before had no error, or did not exist. */
export const manifestStaleEvent = (projectId: string, commit: string | null, at: number): NewEvent => ({
  projectId,
  sessionId: null,
  at,
  type: "manifest.stale",
  data: { commit },
});

/** The time between two events of a project about refused deliveries, ms: anyone may send some. */
export const REFUSAL_NEWS_MS = 60 * 60 * 1000;

/** Deliveries to a project are refused. The first one says why. */
export const deliveryRefusedEvent = ({ projectId, at, slug, code }: WebhookRefusal): NewEvent => ({
  projectId,
  sessionId: null,
  at,
  type: "delivery.refused",
  data: { trigger_slug: slug, code },
});

/** A receiver of events was disabled. */
export const webhookDisabledEvent = (
  { id, projectId }: { readonly id: string; readonly projectId: string },
  reason: string,
  at: number,
): NewEvent => ({
  projectId,
  sessionId: null,
  at,
  type: "webhook.disabled",
  data: { webhook_id: id, reason },
});

const failureFields = (failure: Failure | null | undefined) =>
  failure === null || failure === undefined ? null : { code: failure.code, message: failure.message };
