/** The messages that the service sends of events to receivers outside (api.md 12). */
import { derivedUuid } from "../../../domain/ids.ts";
import { eventRecord, OUTBOUND_EVENTS, type OutboundEvent } from "./events.ts";

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

const isKnown = (type: string): type is OutboundEvent => OUTBOUND_EVENTS.some((known) => known === type);

/** Null if receivers do not get this kind of event. The stream has one type for all statuses of a session. */
export const outboundType = ({ type, data }: Pick<SourceEvent, "type" | "data">): OutboundEvent | null => {
  if (type !== "session.status") return isKnown(type) ? type : null;
  if (data["status"] === "stopped") return "session.stopped";
  return data["status"] === "failed" ? "session.failed" : null;
};

/** An event's message, or null if receivers do not get this kind of event. */
export const outboundMessage = (
  event: SourceEvent,
  { projectName, publicUrl }: Place,
): OutboundMessage | null => {
  const type = outboundType(event);
  if (type === null) return null;
  const record = eventRecord(type);
  const fields = record.fields(event);
  const { projectId, cursor, at } = event;
  return {
    id: `evt_${derivedUuid(projectId, `${cursor} ${at} ${event.type}`).replaceAll("-", "")}`,
    type,
    at,
    data: {
      project_id: projectId,
      project_name: projectName,
      ...fields,
      url: `${publicUrl}/#/projects/${projectId}${record.page(fields)}`,
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
