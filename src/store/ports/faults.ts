/**
 * Named places at which a test may end the process (threats.md "Steps before and after which the process is killed").
 * A place that is not armed calls an empty function.
 */
import * as Context from "effect/Context";

export const FAULT_POINTS = [
  /** A batch of requests is about to be decided. */
  "admission.begun",
  /** Decided by a guess. The one statement that writes and commits it is not sent yet. */
  "admission.guessed",
  /** Decided under the lock and written, but not committed. */
  "admission.written",
  /** Committed, but no actor was told. */
  "admission.committed",
  "drain.begun",
  /** Taken from the queue, but there is no session yet. */
  "drain.taken",
  "drain.written",
  /** Committed, but the sessions were not woken. */
  "drain.committed",
  /** A due instant has come, but nothing is written. */
  "instant.due",
  /** A due instant has its row, but its trigger does not know yet. */
  "instant.accounted",
  /** A webhook's signature was verified, but nothing is written. */
  "webhook.verified",
  /** A webhook's answer was handed to the connection. */
  "webhook.answered",
  /** A session's branch is in the repository, but its session does not know. */
  "branch.cut",
  /** A push has written its refs, but the service was not told. */
  "push.written",
  /** The upstream of a repository is about to be asked to move refs: a new branch, a push, a merge. */
  "upstream.begun",
  /** The upstream has answered, but neither the mirror nor the caller knows. */
  "upstream.answered",
  /** A merge's commits are recorded in its row, but git was not called. */
  "merge.noted",
  /** Git has answered a merge, but the row does not say so. */
  "merge.made",
  /** The manifest was read after a merge, but the row is still open. */
  "merge.read",
  /** The deliveries of a receiver's events are committed, but none is sent. */
  "outbound.collected",
  /** A node has claimed deliveries, and has not sent them yet. */
  "outbound.claimed",
  /** A receiver has answered, but the result is not written. */
  "outbound.answered",
  /** A new master key is on the disk, but the database does not know it. */
  "rotation.drafted",
  /** Everything is sealed with the new key, but not committed. */
  "rotation.written",
  /** Committed, but the file of the former key is still in its place. */
  "rotation.committed",
] as const;
export type FaultPoint = (typeof FAULT_POINTS)[number];

export const Faults = Context.Reference<(point: FaultPoint) => void>("platform/store/Faults", {
  defaultValue: () => () => undefined,
});
