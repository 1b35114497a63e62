/**
 * The news of a session for a person who looked at it earlier, and whether it is put away.
 *
 *  B1 News is the end of a turn, a failure, or something that waits for a person. A turn that goes on is none.
 *  B2 An archived session comes back with its next turn: it is not archived while it works, or with news since.
 */
import type { LastTurn } from "./last-turn.ts";
import { type Activity, type ActivityFacts, asksAsleep, sessionActivity } from "./session-activity.ts";

/** A session can be put away while it has one of these. */
export const AT_REST = [
  "ready_for_review",
  "resting",
  "asleep",
  "failed",
  "done",
] as const satisfies readonly Activity[];

type Facts = Omit<ActivityFacts, "lastTurn"> & {
  readonly lastTurn: LastTurn | null;
  readonly failure: { readonly at: number } | null;
};

/**
 * The instant of the last news, ms since the epoch. 0: no news. A sandbox says when its turn ended, so an instant may be in the
 * future or unreadable.
 */
export const newsAt = ({ lastTurn, failure, conversation, oldestApproval }: Facts): number =>
  Math.max(
    lastTurn === null ? 0 : Date.parse(lastTurn.at) || 0,
    failure?.at ?? 0,
    conversation?.turn.state === "requires_action" ? conversation.turn.since : 0,
    oldestApproval?.at ?? 0,
  );

/** @param seenAt until when the person has seen it. Null if it is not known who asks */
export const isUnread = (facts: Facts, seenAt: number | null): boolean =>
  seenAt !== null && newsAt(facts) > seenAt;

/** The instants of turns are compared as texts, as the store does. */
export const isArchived = (facts: Facts & { readonly archivedAt?: number | null }): boolean => {
  const { archivedAt = null, lastTurn, failure } = facts;
  if (archivedAt === null || (failure?.at ?? 0) > archivedAt) return false;
  if (lastTurn !== null && lastTurn.at > new Date(archivedAt).toISOString()) return false;
  const activity = sessionActivity(facts);
  return AT_REST.some((each) => each === activity) || (asksAsleep(facts) && facts.oldestApproval === null);
};
