/** Whether a session's work is missing in its save, in a few words. report.ts has the rest. */
import { pathCount, pathsAre } from "../elements/format.ts";
import { isOfEnded } from "../../src/domain/save/shown.ts";
import { isLive } from "../projects/project.ts";
import type { Saved, Session } from "../wire.d.ts";

/** The parts of a save that decide whether work is missing. */
interface Shortage extends Pick<Saved, "state" | "error"> {
  readonly pending: readonly { readonly reason: string; readonly count?: number }[];
}

/**
 * Whether a person must know that not all work is saved. A save that goes on stores one part after the other, and its rest
 * is no news. The losses of an earlier sandbox are none either, once the session lives again: the conversation has said it.
 */
export const isUnsafe = ({
  status,
  saved,
}: Pick<Session, "status"> & { readonly saved: Shortage | null }): boolean =>
  saved !== null &&
  saved.state !== "complete" &&
  (!isLive(status) ||
    (!isOfEnded(saved.error) &&
      (saved.state === "failed" ||
        saved.error !== null ||
        saved.pending.some(({ reason }) => reason !== "not_stored_yet"))));

/** The missing work in a few words. */
export const unsavedWords = ({ state, pending }: Pick<Shortage, "state" | "pending">): string => {
  if (pending.length > 0) return `${pathsAre(pathCount(pending))} not saved.`;
  return state === "failed" ? "The last save failed." : "Not all work is saved.";
};
