/** Whether a session's work is missing in its save, in a few words. report.js has the rest. */
import { pathCount, pathsAre } from "../elements/format.ts";
import { isOfEnded } from "../../src/domain/save/shown.ts";
import { isLive } from "../projects/project.js";

/** @typedef {import("../wire.d.ts").Session} Session */
/** @typedef {import("../wire.d.ts").Saved} Saved */
/** @typedef {Pick<Saved, "state" | "error"> & {pending: readonly {reason: string, count?: number}[]}} Shortage what decides whether work is missing */

/**
 * Whether a person must know that not all work is saved. A save that goes on stores one part after the other, and its rest
 * is no news. The losses of an earlier sandbox are none either, once the session lives again: the conversation has said it.
 *
 * @param {Pick<Session, "status"> & {saved: Shortage | null}} session
 */
export const isUnsafe = ({ status, saved }) =>
  saved !== null &&
  saved.state !== "complete" &&
  (!isLive(status) ||
    (!isOfEnded(saved.error) &&
      (saved.state === "failed" ||
        saved.error !== null ||
        saved.pending.some(({ reason }) => reason !== "not_stored_yet"))));

/** The missing work in a few words. @param {Pick<Shortage, "state" | "pending">} saved */
export const unsavedWords = ({ state, pending }) => {
  if (pending.length > 0) return `${pathsAre(pathCount(pending))} not saved.`;
  return state === "failed" ? "The last save failed." : "Not all work is saved.";
};
