/** Actions on senders' secrets, on diffs and on ports of a sandbox, for actions.js. */
import { getText, post, put } from "./api.js";
import { ask, tell } from "./dialog.js";
import { showAsked } from "./diff-files.js";
import { chooseDiffView, foldFiles, showFile } from "./diff-view.js";
import { makeId } from "./outbox.js";
import { projectLink } from "./parts.js";
import { projectPath } from "./project.js";
import { addComment, forgetComments, reviewText } from "./review.js";
import { noteWritten } from "./written.js";

/** @typedef {import("./actions.js").Action} Action */

const DAY_MS = 24 * 3_600_000;
/** As long as the key of HMAC-SHA256 is useful. */
const SECRET_BYTES = 32;

/** @returns {string} 64 hexadecimal digits */
const newSecret = () =>
  [...crypto.getRandomValues(new Uint8Array(SECRET_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");

/** @param {string} url with a query or without one @param {string} path of one file */
const withPath = (url, path) => `${url}${url.includes("?") ? "&" : "?"}path=${encodeURIComponent(path)}`;

/** A message to the session's agent, who hears it also after a restart. @param {string} path @param {string} text */
const sendTo = async (path, text) => {
  await post(`${path}/messages`, { id: makeId(), text, restore_saved: true });
  noteWritten(path);
};

/** @type {Record<string, Action>} */
export const WORKBENCH_ACTIONS = {
  /** The browser makes the value, because the service gives none away. */
  "make-webhook-secret": async ({ project = "", secret = "", rotates = "" }, page) => {
    if (rotates !== "") {
      const sure = await ask({
        title: `Make a new value of ${secret}?`,
        text: "Senders keep working with the old value for 24 hours. Give them the new one in that time.",
        confirm: "Make a new value",
      });
      if (sure === null) return;
    }
    const value = newSecret();
    await put(`${projectPath(project)}/secrets/${encodeURIComponent(secret)}`, {
      value,
      service: true,
      ...(rotates !== "" && { previous_valid_ms: DAY_MS }),
    });
    tell({
      title: `The new value of ${secret}`,
      text: "Give it to the sender now. It is not shown again.",
      secret: value,
    });
    page.refresh();
  },

  "give-credentials": async ({ project = "", session = "" }, page) => {
    const sure = await ask({
      title: "Give your own credentials back to this session?",
      text: "The agent uses them again. What the other person said, her open terminals and the programs that she started in the sandbox stay. Stop and restart the session first, if you are not sure.",
      confirm: "Give my credentials back",
    });
    if (sure === null) return;
    await post(`${projectPath(project)}/sessions/${session}/own-credentials/give-back`);
    page.refresh();
  },

  "diff-view": ({ view = "" }, page) => {
    chooseDiffView(view);
    page.draw();
  },
  /** Reads the file's own diff if the page does not have its lines. */
  "show-lines": async ({ url = "", head = "", path = "", load }, page) => {
    const diff = load === undefined ? null : await getText(withPath(url, path));
    showAsked({ url, head, path }, diff);
    page.draw();
  },
  "fold-files": ({ open = "" }) => foldFiles(open !== ""),

  /** A message to the session's agent. It restarts a session that has ended. */
  "ask-agent": async ({ project = "", session = "", text = "" }, page) => {
    await sendTo(`${projectPath(project)}/sessions/${session}`, text);
    page.notice("The agent was asked.", ["Show the session", projectLink(project, `/sessions/${session}`)]);
  },
  "comment-file": async ({ session = "", path = "" }, page) => {
    if (await addComment(session, { file: path })) page.draw();
  },
  "remove-comment": ({ session = "", at = "" }, page) => {
    forgetComments(session, Number(at));
    page.draw();
  },
  /** The comments are kept until the service has them. */
  "send-review": async ({ project = "", session = "" }, page) => {
    await sendTo(`${projectPath(project)}/sessions/${session}`, reviewText(session));
    forgetComments(session);
    page.notice("The agent has your comments.", [
      "Show the session",
      projectLink(project, `/sessions/${session}`),
    ]);
    page.draw();
  },
  "show-file": ({ file = "" }) => showFile(Number(file)),
};
