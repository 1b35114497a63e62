/**
 * Named places at which a test may end the process (threats.md "Steps before and after which the process is killed").
 * Where nothing is armed a place is a call of an empty function.
 */
import * as Context from "effect/Context";

export const FAULT_POINTS = [
  /** A batch of wishes is about to be decided. */
  "admission.begun",
  /** Decided without a look; the one statement that writes and commits it is not sent. */
  "admission.guessed",
  /** Decided under the lock and written, not committed. */
  "admission.written",
  /** Committed; nobody was told. */
  "admission.committed",
  "drain.begun",
  /** Out of the queue, and no session yet. */
  "drain.taken",
  "drain.written",
  /** Committed; the sessions were not woken. */
  "drain.committed",
  /** A due instant has come; nothing is written. */
  "instant.due",
  /** A due instant has its row; its trigger does not know yet. */
  "instant.accounted",
  /** A webhook's signature was found right; nothing is written. */
  "webhook.verified",
  /** A webhook's answer was handed to the connection. */
  "webhook.answered",
  /** A session's branch is in the repository; its session does not know. */
  "branch.cut",
  /** A push has written its refs; nobody was told. */
  "push.written",
  /** The server that keeps a repository is about to be asked to move refs: a new branch, a push, a merge. */
  "upstream.begun",
  /** It has answered; neither the mirror nor whoever asked knows. */
  "upstream.answered",
  /** A merge's commits are noted in its row; git was not asked. */
  "merge.noted",
  /** Git has answered a merge; the row does not say so. */
  "merge.made",
  /** The manifest was read after a merge; the row is still open. */
  "merge.read",
  /** A new master key is on the disk; the database does not know it. */
  "rotation.drafted",
  /** Everything is sealed with it, and not committed. */
  "rotation.written",
  /** Committed; the file of the former key is still in its place. */
  "rotation.committed",
] as const;
export type FaultPoint = (typeof FAULT_POINTS)[number];

export const Faults = Context.Reference<(point: FaultPoint) => void>("platform/store/Faults", {
  defaultValue: () => () => undefined,
});
