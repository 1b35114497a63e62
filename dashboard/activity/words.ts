/** Equal entries in one row, the days of entries, and which ones are new. */
import type { Answer } from "../../src/cli/contract.ts";

export type Entry = Answer<"GET /v1/activity">["entries"][number];

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
