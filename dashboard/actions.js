/** What buttons do: the entry's name stands in `data-action`, its input in the other `data-` attributes. */
import { post, signOut } from "./api.js";
import { ask } from "./dialog.js";
import { projectLink } from "./parts.js";
import { projectPath } from "./project.js";

/**
 * @typedef {object} Page what an action may do to the page
 * @property {(text: string, link?: [string, string]) => void} notice link: its label and its target
 * @property {() => void} refresh
 * @property {() => void} more
 * @property {() => void} signedOut
 */

/** @typedef {(input: DOMStringMap, page: Page) => Promise<void> | void} Action */

/** @type {Record<string, Action>} */
export const ACTIONS = {
  skip: () => document.getElementById("main")?.focus(),
  retry: (_input, page) => page.refresh(),
  more: (_input, page) => page.more(),

  "sign-out": async (_input, page) => {
    await signOut();
    page.signedOut();
  },

  copy: async ({ text = "" }, page) => {
    await navigator.clipboard.writeText(text);
    page.notice("Copied.");
  },

  fire: async ({ project = "", slug = "", title = "" }, page) => {
    const text = await ask({
      title: `Fire "${title}" now`,
      text: "This starts a session.",
      field: {
        label: "Message (optional; the prompt can use it as message.text)",
        value: "",
        lines: 3,
        required: false,
      },
      confirm: "Fire now",
    });
    if (text === null) return;
    const { session_id } = await post(
      `${projectPath(project)}/triggers/${encodeURIComponent(slug)}/fire`,
      text === "" ? {} : { text },
    );
    page.notice(`"${title}" started a session.`, [
      "Open it",
      projectLink(project, `/sessions/${session_id}`),
    ]);
  },

  "stop-session": async ({ project = "", session = "" }, page) => {
    const sure = await ask({
      title: "Stop this session?",
      text: "Its sandbox is torn down. What the agent pushed stays on the session branch.",
      confirm: "Stop",
    });
    if (sure === null) return;
    await post(`${projectPath(project)}/sessions/${session}/stop`);
    page.notice("The session was stopped.");
  },

  "restart-session": async ({ project = "", session = "" }, page) => {
    await post(`${projectPath(project)}/sessions/${session}/restart`);
    page.notice("The session starts again, in a fresh sandbox on the same branch.");
  },

  "open-change-request": async ({ project = "", session = "", title = "" }, page) => {
    const named = await ask({
      title: "Open a change request",
      text: "It proposes to merge the session branch into the default branch.",
      field: { label: "Title", value: title, lines: 1, required: true },
      confirm: "Open",
    });
    if (named === null) return;
    const { number } = await post(`${projectPath(project)}/change-requests`, {
      session_id: session,
      title: named,
    });
    page.notice(`Change request #${number} is open.`, [
      "Open it",
      projectLink(project, `/change-requests/${number}`),
    ]);
  },

  merge: async ({ project = "", number = "", base = "" }, page) => {
    const sure = await ask({
      title: `Merge #${number} into ${base}?`,
      text: "Its commits become part of that branch, and the triggers are read from there again.",
      confirm: "Merge",
    });
    if (sure === null) return;
    try {
      await post(`${projectPath(project)}/change-requests/${number}/merge`);
    } finally {
      // Also after a refusal: the branches have changed since they were shown.
      page.refresh();
    }
    page.notice(`#${number} was merged into ${base}.`);
  },

  "close-change-request": async ({ project = "", number = "" }, page) => {
    const sure = await ask({
      title: `Close #${number} without merging it?`,
      text: "The branch stays as it is, and another change request can be opened for it.",
      confirm: "Close",
    });
    if (sure === null) return;
    await post(`${projectPath(project)}/change-requests/${number}/close`);
    page.notice(`#${number} was closed.`);
  },
};
