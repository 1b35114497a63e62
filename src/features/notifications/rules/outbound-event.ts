/**
 * What the service tells receivers outside (api.md 12): which events, and a small message for each. A message has ids,
 * names and a link. It has no prompt, no text of an agent, no message of an error and no secret.
 */
import { isRecord } from "../../../ground/record.ts";
import { derivedUuid } from "../../../domain/ids.ts";

export const OUTBOUND_EVENTS = [
  "session.waiting",
  "session.turn_ended",
  "approval.waiting",
  "session.work_unsaved",
  "session.stopped",
  "session.failed",
  "change_request.opened",
  "change_request.review_requested",
  "change_request.merged",
  "change_request.closed",
  "fire.failed",
  "fire.expired",
  "queue.full",
  "manifest.stale",
  "webhook.disabled",
] as const;
export type OutboundEvent = (typeof OUTBOUND_EVENTS)[number];

/** What a test sends. No receiver chooses it. */
export const TEST_EVENT = "webhook.test";

/** An event of the project's stream, as the store has it. */
export interface SourceEvent {
  /** Its place in the stream. With project, type and instant it names one event for ever. */
  readonly cursor: string;
  readonly type: string;
  readonly at: number;
  readonly projectId: string;
  readonly sessionId: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The message of one event, which is the same for each receiver. */
export interface OutboundMessage {
  /** The `webhook-id`. The same event has the same id on each node. */
  readonly id: string;
  readonly type: OutboundEvent | typeof TEST_EVENT;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly data: Readonly<Record<string, string | number | null>>;
}

interface Place {
  readonly projectName: string;
  /** The service's address for people, without a slash at its end. */
  readonly publicUrl: string;
}

/** A code, an id or a number of an event's data; null for anything else, such as a text. */
const short = (value: unknown): string | number | null =>
  typeof value === "number" || (typeof value === "string" && value.length <= 200) ? value : null;

const isKnown = (type: string): type is OutboundEvent => OUTBOUND_EVENTS.some((known) => known === type);

/** The stream has one type for all statuses of a session. */
const typeOf = ({ type, data }: SourceEvent): OutboundEvent | null => {
  if (type !== "session.status") return isKnown(type) ? type : null;
  if (data["status"] === "stopped") return "session.stopped";
  return data["status"] === "failed" ? "session.failed" : null;
};

const failureCode = (failure: unknown): string | number | null =>
  isRecord(failure) && "code" in failure ? short(failure["code"]) : null;

type Fields = Readonly<Record<string, string | number | null>>;

const changeRequestDetail = (
  type: OutboundEvent,
  { sessionId, data }: Pick<SourceEvent, "sessionId" | "data">,
) => {
  const number = short(data["number"]);
  const reviewer = { reviewer_id: short(data["reviewer_id"]), reviewer_name: short(data["reviewer_name"]) };
  return {
    fields: { session_id: sessionId, number, ...(type === "change_request.review_requested" && reviewer) },
    page: `/change-requests/${number}`,
  };
};

const waitingFields = (data: SourceEvent["data"]): Fields => ({
  request_id: short(data["request_id"]),
  reason: short(data["reason"]),
});

/** The event's own fields, and the page below its project that shows more. */
const detailOf = (
  type: OutboundEvent,
  { sessionId, data }: SourceEvent,
): { readonly fields: Fields; readonly page: string } => {
  const inSession = sessionId === null ? "" : `/sessions/${sessionId}`;
  const fire = { fire_id: short(data["fire_id"]), trigger_slug: short(data["trigger_slug"]) };
  switch (type) {
    case "session.waiting":
      return { fields: { session_id: sessionId, ...waitingFields(data) }, page: inSession };
    case "session.turn_ended":
      return {
        fields: {
          session_id: sessionId,
          session_name: short(data["session_name"]),
          state: short(data["state"]),
          code: short(data["code"]),
          turn: short(data["turn"]),
          turn_id: short(data["turn_id"]),
          change_request: short(data["change_request"]),
        },
        page: inSession,
      };
    case "approval.waiting":
      return {
        fields: {
          session_id: sessionId,
          approval_id: short(data["approval_id"]),
          connector: short(data["connector"]),
          tool: short(data["tool"]),
        },
        page: inSession,
      };
    case "session.work_unsaved":
      return {
        fields: {
          session_id: sessionId,
          reason: short(data["reason"]),
          pending: short(data["pending"]),
          state: data["stays"] === true ? "waiting" : "ended",
        },
        page: inSession,
      };
    case "session.stopped":
      return { fields: { session_id: sessionId, stop_reason: short(data["stop_reason"]) }, page: inSession };
    case "session.failed":
      return { fields: { session_id: sessionId, code: failureCode(data["failure"]) }, page: inSession };
    case "change_request.opened":
    case "change_request.review_requested":
    case "change_request.merged":
    case "change_request.closed":
      return changeRequestDetail(type, { sessionId, data });
    case "fire.failed":
    case "fire.expired":
      return { fields: { ...fire, reason: short(data["reason"]) }, page: `/fires/${fire.fire_id}` };
    case "queue.full":
      return { fields: { ...fire, limit: short(data["limit"]) }, page: "/fires" };
    case "manifest.stale":
      return { fields: { commit: short(data["commit"]) }, page: "/triggers" };
    case "webhook.disabled":
      return {
        fields: { webhook_id: short(data["webhook_id"]), reason: short(data["reason"]) },
        page: "/settings",
      };
  }
};

/** An event's message. Null: receivers do not get this kind of event. */
export const outboundMessage = (
  event: SourceEvent,
  { projectName, publicUrl }: Place,
): OutboundMessage | null => {
  const type = typeOf(event);
  if (type === null) return null;
  const { fields, page } = detailOf(type, event);
  const { projectId, cursor, at } = event;
  return {
    id: `evt_${derivedUuid(projectId, `${cursor} ${at} ${event.type}`).replaceAll("-", "")}`,
    type,
    at,
    data: {
      project_id: projectId,
      project_name: projectName,
      ...fields,
      url: `${publicUrl}/#/projects/${projectId}${page}`,
    },
  };
};

/** Where a person changes what she is told. */
export const noticesUrl = (publicUrl: string): string => `${publicUrl}/#/account`;

/** The message of a test. */
export const testMessage = (
  id: string,
  { at, projectId, projectName, publicUrl }: Place & { readonly at: number; readonly projectId: string },
): OutboundMessage => ({
  id: `evt_${id.replaceAll("-", "")}`,
  type: TEST_EVENT,
  at,
  data: {
    project_id: projectId,
    project_name: projectName,
    url: `${publicUrl}/#/projects/${projectId}/settings`,
  },
});
