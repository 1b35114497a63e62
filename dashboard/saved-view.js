/** Loads the panel of saved work for a session that has something to show in it. */
import { diffView } from "./diff-view.js";
import { bring } from "./later.js";
import { canRestore } from "./saved-work.js";
import { sourceOf } from "./work.js";

/** @typedef {import("./wire.d.ts").Session} Session */
/** @typedef {{view: (session: Session) => import("./dom.js").Child}} SavedView */

/** Loads the panel once there is something to show. @param {string} path of the session in the API @param {() => void} changed */
export const followSaved = (path, changed) => {
  /** @type {(SavedView & {see: (session: Session) => void}) | null} */
  let panel = null;
  let [isWanted, hasEnded] = [false, false];

  const load = async () => {
    isWanted = true;
    try {
      const { followSaves } = await bring(() => import("./saved-panel.js"));
      panel = followSaves(path, {
        changed: () => !hasEnded && changed(),
        canRestore,
        showDiff: (diff, url, changes) => diffView(diff, { source: sourceOf(url, changes), open: false }),
      });
      if (!hasEnded) changed();
    } catch {
      // The next drawing of the page tries again.
      isWanted = false;
    }
  };

  return {
    /** @type {SavedView} */
    shown: { view: (session) => panel?.view(session) },
    /** @param {Session} session */
    see: (session) => {
      const { saved, restored, status } = session;
      if (panel !== null) panel.see(session);
      else if (!isWanted && (saved !== null || restored !== null || status === "running")) void load();
    },
    end: () => (hasEnded = true),
  };
};
