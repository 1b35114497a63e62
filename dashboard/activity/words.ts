/** What happened, in words, and what belongs together. */
import type { Answer } from "../../src/cli/contract.ts";

export type Entry = Answer<"GET /v1/activity">["entries"][number];

const TURNS: Readonly<Record<string, string>> = {
  completed: "The agent finished",
  failed: "A turn failed",
  interrupted: "The turn was stopped",
};
const WAITS: Readonly<Record<string, string>> = {
  permission: "The agent asks for permission",
  plan: "The agent proposes a plan",
};
const REMARKS: Readonly<Record<string, string>> = {
  approval: "approved it",
  changes_requested: "asks for changes",
};

/** @param readerId who reads is "you" */
export const entryText = (entry: Entry, readerId: string): string => {
  const { kind, state, reviewer } = entry;
  const nameOf = (person: Entry["person"], otherwise: string): string =>
    person?.id === readerId ? "you" : (person?.name ?? otherwise);
  const doer = entry.person === null ? null : nameOf(entry.person, "");
  const who = doer === "you" ? "You" : (doer ?? "An agent");
  switch (kind) {
    case "session.turn_ended":
      return TURNS[state ?? ""] ?? "A turn ended";
    case "session.waiting":
      return WAITS[state ?? ""] ?? "The agent asks a question";
    case "approval.waiting":
      return "A call of the agent needs approval";
    case "session.work_unsaved":
      return "Its work could not be saved";
    case "session.failed":
      return "The session failed";
    case "change_request.opened":
      return `${who} opened it`;
    case "change_request.review_requested":
      return `${who} ${who === "You" ? "ask" : "asks"} ${nameOf(reviewer, "somebody")} for a review`;
    case "change_request.remarked":
      return `${who} ${who === "You" && state === "changes_requested" ? "ask for changes" : (REMARKS[state ?? ""] ?? "commented")}`;
    case "change_request.merged":
      return doer === null ? "It was merged" : `${who} merged it`;
    case "change_request.closed":
      return "It was closed";
    case "trigger.fired":
      return `The trigger ${entry.trigger_slug ?? ""} started a session`;
    case "fire.failed":
      return "A run could not start";
    case "fire.expired":
      return "A run waited too long";
    case "delivery.refused":
      return "Deliveries are refused";
    case "queue.full":
      return "The queue is full, and runs are refused";
    case "manifest.stale":
      return "platform.toml cannot be read";
    case "webhook.disabled":
      return "A receiver of notifications was disabled";
  }
};

/** Its change request, session, trigger or project, by a name. */
export const entrySubject = ({
  change_request: request,
  session,
  trigger_slug: slug,
  project,
}: Entry): string =>
  request === null ? (session?.name ?? slug ?? project.name) : `#${request.number} ${request.title}`;

/** An entry, and how often the same happened without anything between. */
export interface Row {
  readonly entry: Entry;
  readonly count: number;
}

/** Runs of one trigger are alike, and ends of one session's turns too. */
const likeness = ({
  kind,
  project,
  session,
  trigger_slug: slug,
  change_request: request,
  state,
  person,
}: Entry) => JSON.stringify([kind, project.id, slug ?? session?.id, request?.number, state, person?.id]);

export const withCounts = (entries: readonly Entry[]): readonly Row[] => {
  const rows: { entry: Entry; count: number }[] = [];
  for (const entry of entries) {
    const last = rows.at(-1);
    if (last !== undefined && likeness(last.entry) === likeness(entry)) last.count += 1;
    else rows.push({ entry, count: 1 });
  }
  return rows;
};

const DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

/** The beginning of the reader's day. */
const midnight = (time: number): number => new Date(time).setHours(0, 0, 0, 0);

/** The reader's day. */
export const dayText = (at: string, now: number): string => {
  const days = Math.round((midnight(now) - midnight(Date.parse(at))) / 86_400_000);
  if (days === 0) return "Today";
  return days === 1 ? "Yesterday" : DAY.format(new Date(at));
};

/** Whether it happened since the reader last looked, and she did not do it herself. @param reader `seenAt`: null if she never looked */
export const isNew = (
  { at, person }: Entry,
  { id, seenAt }: { readonly id: string; readonly seenAt: string | null },
): boolean => seenAt !== null && at > seenAt && (person === null || person.id !== id);
