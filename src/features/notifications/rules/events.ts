/**
 * Each event that receivers outside may hear of (api.md 12), in the order of the API's document. A message has ids, names and a link. It
 * has no prompt, no text of an agent, no message of an error and no secret.
 */
import { cutText, plainLine } from "../../../domain/text.ts";
import { isRecord } from "../../../ground/record.ts";

type Value = string | number | null;
/** A message's own fields. */
export type Fields = Readonly<Record<string, Value>>;

/** The kinds of notices to people. Each person chooses. */
export const NOTICE_KINDS = ["asked", "finished"] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** An event of the project's stream. */
interface Fact {
  readonly sessionId: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface EventRecord {
  /** What the page says beside its checkbox. */
  readonly label: string;
  /** Whether a new receiver hears of it unless its person says otherwise. */
  readonly isUsual: boolean;
  /** The notice to the people whose session it is. Absent: none. */
  readonly notice?: (data: Fact["data"]) => NoticeKind | null;
  readonly fields: (fact: Fact) => Fields;
  /** The page that shows more, below its project's. */
  readonly page: (fields: Fields) => string;
  /** What happened, as the rest of a line after the project's name. `session_name` is known in notices to people. */
  readonly sentence: (fields: Fields) => string;
}

/** A code, an id or a number of an event's data; null for anything else, such as a text. */
const short = (value: unknown): Value =>
  typeof value === "number" || (typeof value === "string" && value.length <= 200) ? value : null;

/** These of an event's data. */
const pick = (data: Fact["data"], ...names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [name, short(data[name])]));

/** Names of other systems have at most this many characters in a chat's line. */
const NAME_MAX = 100;

/** A name in one line. */
export const plain = (value: unknown): string => cutText(plainLine(String(value ?? "")), NAME_MAX);

const because = (value: Value | undefined): string => (value == null ? "" : ` (${plain(value)})`);
const inSession = ({ session_name: name }: Fields): string => (name == null ? "" : ` in ${plain(name)}`);
const session = ({ session_name: name }: Fields): string =>
  name == null ? "a session" : `the session ${plain(name)}`;
const run = ({ trigger_slug: slug }: Fields): string =>
  slug == null ? "a session that a person asked for" : `a run of the trigger ${plain(slug)}`;

const sessionPage = ({ session_id: id }: Fields): string => (id == null ? "" : `/sessions/${id}`);
const changeRequestPage = ({ number }: Fields): string => `/change-requests/${number}`;
const changeRequestFields = ({ sessionId, data }: Fact): Fields => ({
  session_id: sessionId,
  ...pick(data, "number"),
});
const firePage = ({ fire_id: id }: Fields): string => `/fires/${id}`;
const askNotice = (): NoticeKind => "asked";

/** For what the agent waits. */
const AWAITED: Readonly<Record<string, string>> = {
  question: "an answer",
  permission: "a permission",
  plan: "the approval of its plan",
};
const ENDS: Readonly<Record<string, string>> = {
  completed: "has finished",
  failed: "failed",
  interrupted: "was interrupted",
};

export const EVENTS = {
  "session.waiting": {
    label: "A session waits for a person",
    isUsual: true,
    notice: askNotice,
    fields: ({ sessionId, data }) => ({ session_id: sessionId, ...pick(data, "request_id", "reason") }),
    page: sessionPage,
    sentence: (fields) => `${session(fields)} waits for ${AWAITED[String(fields["reason"])] ?? "a person"}`,
  },
  "session.turn_ended": {
    label: "The agent has finished its turn",
    isUsual: false,
    // A person interrupts a turn herself.
    notice: ({ state }) => (state === "completed" || state === "failed" ? "finished" : null),
    fields: ({ sessionId, data }) => ({
      session_id: sessionId,
      ...pick(data, "session_name", "state", "code", "turn", "turn_id", "change_request"),
    }),
    page: sessionPage,
    sentence: (fields) =>
      [
        `the agent ${ENDS[String(fields["state"])] ?? "has ended its turn"}`,
        because(fields["code"]),
        inSession(fields),
        fields["change_request"] == null ? "" : `, change request ${plain(fields["change_request"])} is open`,
      ].join(""),
  },
  "approval.waiting": {
    label: "A tool call waits for approval",
    isUsual: true,
    notice: askNotice,
    fields: ({ sessionId, data }) => ({
      session_id: sessionId,
      ...pick(data, "approval_id", "connector", "tool"),
    }),
    page: sessionPage,
    sentence: (fields) =>
      `a call of ${plain(fields["tool"])} (${plain(fields["connector"])}) waits for a person's approval${inSession(fields)}`,
  },
  "session.work_unsaved": {
    label: "Not all work of a session can be saved",
    isUsual: true,
    notice: askNotice,
    fields: ({ sessionId, data }) => ({
      session_id: sessionId,
      ...pick(data, "reason", "pending"),
      state: data["stays"] === true ? "waiting" : "ended",
    }),
    page: sessionPage,
    sentence: (fields) =>
      fields["state"] === "waiting"
        ? `the work of ${session(fields)} cannot be saved${because(fields["reason"])}, so its sandbox stays`
        : `${session(fields)} ended, and not all of its work could be saved${because(fields["reason"])}`,
  },
  "session.stopped": {
    label: "A session stopped",
    isUsual: false,
    fields: ({ sessionId, data }) => ({ session_id: sessionId, ...pick(data, "stop_reason") }),
    page: sessionPage,
    sentence: (fields) => `${session(fields)} stopped${because(fields["stop_reason"])}`,
  },
  "session.failed": {
    label: "A session failed",
    isUsual: true,
    notice: () => "finished",
    fields: ({ sessionId, data: { failure } }) => ({
      session_id: sessionId,
      code: isRecord(failure) ? short(failure["code"]) : null,
    }),
    page: sessionPage,
    sentence: (fields) => `${session(fields)} failed${because(fields["code"])}`,
  },
  "change_request.opened": {
    label: "A change request was opened",
    isUsual: true,
    fields: changeRequestFields,
    page: changeRequestPage,
    sentence: ({ number }) => `change request ${plain(number)} is open`,
  },
  "change_request.review_requested": {
    label: "A person is asked for a review",
    isUsual: true,
    notice: askNotice,
    fields: (fact) => ({ ...changeRequestFields(fact), ...pick(fact.data, "reviewer_id", "reviewer_name") }),
    page: changeRequestPage,
    sentence: ({ number, reviewer_name: name }) =>
      `${plain(name)} is asked to review change request ${plain(number)}`,
  },
  "change_request.merged": {
    label: "A change request was merged",
    isUsual: false,
    fields: changeRequestFields,
    page: changeRequestPage,
    sentence: ({ number }) => `change request ${plain(number)} is merged`,
  },
  "change_request.closed": {
    label: "A change request was closed",
    isUsual: false,
    fields: changeRequestFields,
    page: changeRequestPage,
    sentence: ({ number }) => `change request ${plain(number)} is closed`,
  },
  "fire.failed": {
    label: "A trigger's run could not start",
    isUsual: true,
    fields: ({ data }) => pick(data, "fire_id", "trigger_slug", "reason"),
    page: firePage,
    sentence: (fields) => `${run(fields)} could not start${because(fields["reason"])}`,
  },
  "fire.expired": {
    label: "A trigger's run waited too long",
    isUsual: false,
    fields: ({ data }) => pick(data, "fire_id", "trigger_slug", "reason"),
    page: firePage,
    sentence: (fields) => `${run(fields)} waited too long`,
  },
  "queue.full": {
    label: "The queue is full",
    isUsual: true,
    fields: ({ data }) => pick(data, "fire_id", "trigger_slug", "limit"),
    page: () => "/fires",
    sentence: (fields) => `the queue is full${because(fields["limit"])}`,
  },
  "manifest.stale": {
    label: "The newest platform.toml cannot be read",
    isUsual: true,
    fields: ({ data }) => pick(data, "commit"),
    page: () => "/triggers",
    sentence: () => "the newest platform.toml cannot be read",
  },
  "webhook.disabled": {
    label: "Another receiver was disabled",
    isUsual: false,
    fields: ({ data }) => pick(data, "webhook_id", "reason"),
    page: () => "/settings",
    sentence: (fields) => `an outbound webhook was disabled${because(fields["reason"])}`,
  },
} as const satisfies Readonly<Record<string, EventRecord>>;

export type OutboundEvent = keyof typeof EVENTS;
export const OUTBOUND_EVENTS = Object.keys(EVENTS) as readonly OutboundEvent[];

/** The record of an event. */
export const eventRecord = (type: OutboundEvent): EventRecord => EVENTS[type];
