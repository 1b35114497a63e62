/** Work that the service saved: whether a restart brings it back, and why an idle session waits. panel.js has the rest. */
import { h } from "../elements/dom.ts";
import { counted } from "../elements/format.ts";
import { time } from "../elements/parts.ts";
import { hasContents } from "../../src/domain/save/shown.ts";
import { hasEnded } from "../projects/project.js";

/** @typedef {import("../wire.d.ts").Session} Session */
/** @typedef {import("../wire.d.ts").Saved} Saved */

/** The id of the box in which the reader says whether a restart brings saved work back. */
export const RESTORE_BOX = "restore-saved";

/** Whether a restart of this session would have something to bring back. @param {Session} session */
export const canRestore = ({ status, saved }) =>
  hasEnded(status) && saved !== null && (hasContents(saved) || (saved.earlier ?? []).length > 0);

/** What the reader wishes of a restart. Without a box, as in a list, saved work is brought back. */
export const isRestoreWanted = () => {
  const box = document.querySelector(`#${RESTORE_BOX}`);
  return !(box instanceof HTMLInputElement) || box.checked;
};

/** Why an idle session is not stopped. @param {Pick<Session, "unsaved">} session */
export const waitView = ({ unsaved }) =>
  unsaved !== null &&
  h(
    "p",
    { "data-key": "waits" },
    "The first try to save it was ",
    time(unsaved.since),
    `. The service has tried ${counted(unsaved.tries, "time")}, and tries again `,
    time(unsaved.next_try_at),
    ". After 24 hours the session stops with what is saved then.",
  );
