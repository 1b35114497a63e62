/**
 * Named places at which a test may end the process (threats.md, "Steps before and after which the process is killed").
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
] as const;
export type FaultPoint = (typeof FAULT_POINTS)[number];

export const Faults = Context.Reference<(point: FaultPoint) => void>("platform/store/Faults", {
  defaultValue: () => () => undefined,
});
