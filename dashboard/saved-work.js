/** Work that the service saved: what is not saved, and whether a restart brings it back. saved-panel.js has the rest, and saved-view.js loads it. */
import { h } from "./dom.js";
import { counted, sentence } from "./format.js";
import { button, callout, prose, time } from "./parts.js";
import { hasContents, isLive } from "./project.js";
import { isUnsafe, unsavedWords } from "./saved-words.js";

/** @typedef {import("./wire.d.ts").Session} Session */
/** @typedef {import("./wire.d.ts").Saved} Saved */

const BOX = "restore-saved";
const ENDED = new Set(["stopped", "failed"]);

/** Whether a restart of this session would have something to bring back. @param {Session} session */
export const canRestore = ({ status, saved }) =>
  ENDED.has(status) && saved !== null && (hasContents(saved) || (saved.earlier ?? []).length > 0);

/** What the reader wishes of a restart. Without a box, as in a list, saved work is brought back. */
export const isRestoreWanted = () => {
  const box = document.querySelector(`#${BOX}`);
  return !(box instanceof HTMLInputElement) || box.checked;
};

/** Above the conversation: what is not saved, and what a restart brings back. @param {Session} session */
export const savedCallout = (session) => {
  const { saved } = session;
  const isWhole = !isUnsafe(session);
  if (saved === null || (isWhole && !canRestore(session))) return null;
  return callout(
    isWhole ? "info" : "warn",
    h("p", {}, h("strong", {}, headline(session, saved))),
    !isWhole && saved.error !== null && h("p", { class: "text" }, prose(sentence(saved.error))),
    waitView(session),
    h(
      "p",
      {},
      canRestore(session) &&
        h(
          "label",
          { class: "choice" },
          h("input", { type: "checkbox", id: BOX, checked: true, "data-key": BOX }),
          " Bring back unpushed work with a restart",
        ),
      " ",
      button("show-saved", isWhole ? "Show the files" : "Show what is missing", { class: "plain" }),
    ),
  );
};

/** @param {Session} session @param {Saved} saved */
const headline = ({ status, unsaved }, saved) => {
  if (saved.state === "complete") return "The agent left unpushed work. It is saved.";
  const lead = unsavedWords(saved);
  if (unsaved !== null) return `${lead} The idle session waits for that and keeps its sandbox.`;
  const what =
    saved.pending.length > 0
      ? "Their newest version"
      : `What came after the ${saved.state === "failed" ? "one before" : "last save"}`;
  return `${lead} ${what} is ${isLive(status) ? "only in the sandbox" : "lost"}.`;
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
