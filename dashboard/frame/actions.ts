/** The actions of buttons. `data-action` names the entry, the other `data-` attributes are its input. */
import { post, remove, signOut } from "../api/api.ts";
import { allowNotifications, stopNotifications } from "../live/attention.ts";
import { ask, askFor, SECRET_LINES } from "./dialog.ts";
import { h } from "../elements/dom.ts";
import { moment } from "../elements/format.ts";
import { showShortcuts } from "./keys.ts";
import { readSummary } from "../sessions/summary.ts";
import { forgetKept } from "./kept.ts";
import { openPalette } from "./palette.ts";
import { fireLink, projectLink } from "../elements/parts.ts";
import {
  isKeyRefused,
  type NewSecret,
  saveSecret,
  type SecretPlace,
  UNTRIED,
} from "../projects/key-saving.ts";
import { projectPath } from "../projects/project.ts";
import { isRestoreWanted } from "../saved/work.ts";

/** The page, as an action sees it. */
interface Page {
  /** Link: its label and its target. */
  notice: (text: string, link?: [string, string]) => void;
  /** Removes the notice. */
  dismiss: () => void;
  /** Reads the page's data again, soon. */
  refresh: () => void;
  /** Reads the page again, so that what is said afterwards does not contradict it. */
  reread: () => Promise<void>;
  draw: () => void;
  go: (hash: string) => void;
  more: () => void;
  signedOut: () => void;
}

export type Action = (input: DOMStringMap, page: Page) => Promise<void> | void;

/** A line that may be empty. */
const OPTIONAL = { value: "", lines: 1, required: false };

/** What a person can give to a run by hand. */
const HAND_FIELDS = {
  text: {
    ...OPTIONAL,
    label: "Message",
    hint: "Optional. The trigger's prompt has a place for it (message.text).",
    lines: 3,
  },
  source: {
    ...OPTIONAL,
    label: "Source",
    hint: "Optional. Where the message comes from, such as a link. The trigger's prompt has a place for it (message.source).",
  },
};

/** Actions on triggers and their fires. */
const FIRE_ACTIONS: Record<string, Action> = {
  /** `uses`: what the prompt reads of a run by hand. */
  fire: async ({ project = "", slug = "", title = "", uses = "" }, page) => {
    const question = { title: `Run "${title}" now`, text: "This starts a session.", confirm: "Run now" };
    const fields = Object.fromEntries(Object.entries(HAND_FIELDS).filter(([name]) => uses.includes(name)));
    const typed = await askFor(question, fields);
    if (typed === null) return;
    const given = Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== ""));
    const { session_id } = await post(
      `${projectPath(project)}/triggers/${encodeURIComponent(slug)}/fire`,
      given,
    );
    page.notice(`"${title}" started a session.`, [
      "Open the session",
      projectLink(project, `/sessions/${session_id}`),
    ]);
  },

  replay: async ({ project = "", fire = "", title = "" }, page) => {
    const sure = await ask({
      title: `Replay this run of "${title}"?`,
      text: "The trigger runs again with the stored input and starts a new session.",
      confirm: "Replay",
    });
    if (sure === null) return;
    const { status, session_id } = await post(`${projectPath(project)}/fires/${fire}/replay`);
    if (status === "fired") {
      page.notice("The replay started a session.", [
        "Open the session",
        projectLink(project, `/sessions/${session_id}`),
      ]);
    } else {
      page.notice("The replay waits for a free session.", ["Show the queue", "#/queue"]);
    }
  },

  "cancel-fire": async ({ project = "", fire = "", title = "", kind }, page) => {
    const isRun = kind !== "session";
    const sure = await ask({
      title: isRun ? `Cancel the waiting run of "${title}"?` : `Cancel the waiting session "${title}"?`,
      text: isRun
        ? "The run leaves the queue and does not start a session. It stays in the list of runs."
        : "It leaves the queue and does not start.",
      confirm: isRun ? "Cancel the run" : "Cancel the session",
      decline: "Keep waiting",
    });
    if (sure === null) return;
    await remove(`${projectPath(project)}/fires/${fire}`);
    if (isRun) page.notice("The run was cancelled.", ["Show the run", fireLink(project, fire)]);
    else page.notice("The session was cancelled.");
  },
};

const HOUR_MS = 3_600_000;
const PREVIOUS_HOURS_MAX = 168;

/** Asks before it saves a key that its provider does not accept. If the reader declines, she is back at what she typed. */
const putSecret = async (place: SecretPlace, secret: NewSecret): ReturnType<typeof saveSecret> => {
  try {
    return await saveSecret(place, secret, false);
  } catch (error) {
    if (!isKeyRefused(error) || !(error instanceof Error)) throw error;
    const sure = await ask({
      title: "The key was not accepted",
      text: error.message,
      confirm: UNTRIED,
      decline: "Back",
    });
    if (sure === null) throw error;
    return saveSecret(place, secret, true);
  }
};

/** Sets a signing secret's new value. During a rotation the previous value may continue to verify webhooks. */
const setSecret = async (
  { project = "", secret = "", rotates = "", service = "" }: DOMStringMap,
  page: Page,
) => {
  const typed = await askFor(
    {
      title: `${rotates === "" ? "Set" : "Replace"} the secret ${secret}`,
      text:
        service === ""
          ? "Running sessions get the new value after their current turn."
          : "The service verifies webhooks with it. No agent gets it.",
      confirm: rotates === "" ? "Set" : "Replace",
    },
    {
      value: { label: "New value", value: "", lines: SECRET_LINES, required: true, hidden: true },
      ...(rotates !== "" && {
        hours: {
          ...OPTIONAL,
          label: "Hours for which the previous value stays valid",
          hint: `0 to ${PREVIOUS_HOURS_MAX}. With 0, the previous value becomes invalid at once.`,
          value: "0",
        },
      }),
    },
  );
  if (typed === null) return;
  const hours = Number(typed["hours"] ?? 0);
  if (!(hours >= 0 && hours <= PREVIOUS_HOURS_MAX))
    throw new Error(`Enter a number of hours from 0 to ${PREVIOUS_HOURS_MAX}.`);
  const { previous_valid_until: until } = await putSecret([project, secret], {
    value: typed["value"] ?? "",
    previous_valid_ms: Math.round(hours * HOUR_MS),
    ...(service !== "" && { service: true }),
  });
  const also = until === null ? "" : ` The previous value stays valid until ${moment(until)}.`;
  page.notice(`${rotates === "" ? `${secret} is set.` : `The value of ${secret} is replaced.`}${also}`);
  page.refresh();
};

/** Browsers have a clipboard for pages over https and on the reader's own machine. Elsewhere, a selection is copied. */
export const copyText = async (text: string) => {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = h("textarea", { class: "unseen", "aria-hidden": "true" }, text);
  // While a dialog is open, only it can have the focus.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  const before = document.activeElement;
  area.focus();
  (area as HTMLTextAreaElement).select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  if (!isCopied) throw new Error("This browser does not copy. Select the text, and copy it by hand.");
};

/** A sandbox boots, is probed and is removed. */
const EXAMINE_TIMEOUT_MS = 180_000;

export const ACTIONS: Record<string, Action> = {
  skip: () => document.getElementById("main")?.focus(),
  retry: (_input, page) => page.refresh(),
  more: (_input, page) => page.more(),
  examine: async (_input, page) => {
    page.notice("A sandbox is started and examined. This takes a few seconds.");
    const { usable } = await post("/v1/operator/doctor", {}, EXAMINE_TIMEOUT_MS);
    page.notice(usable ? "A sandbox started." : "No sandbox can be started on this node.");
  },
  "resume-installation": async (_input, page) => {
    await post("/v1/operator/resume", {});
    page.notice("The pause has ended.");
    page.refresh();
  },
  palette: () => openPalette(),
  shortcuts: () => showShortcuts(),
  "allow-notifications": async (_input, page) => {
    await allowNotifications();
    page.draw();
  },
  "stop-notifications": (_input, page) => {
    stopNotifications();
    page.draw();
  },

  "sign-out": async (_input, page) => {
    await signOut();
    forgetKept();
    page.signedOut();
  },

  /** Leaves the page for a provider: to join by an invitation, or to add it to the reader. */
  "go-to-provider": async ({ provider = "", invitation, link }) => {
    const { url } = await post(`/dashboard/login/${provider}`, {
      return: link === undefined ? "/" : "/#/browsers",
      ...(invitation !== undefined && { invitation }),
      ...(link !== undefined && { link: true }),
    });
    location.assign(url);
  },

  copy: async ({ text = "" }, page) => {
    await copyText(text);
    page.notice("Copied.");
  },

  dismiss: (_input, page) => page.dismiss(),

  "restart-session": async ({ project = "", session = "" }, page) => {
    await post(`${projectPath(project)}/sessions/${session}/restart`, { restore_saved: isRestoreWanted() });
    page.notice("The session is restarting in a new sandbox on the same branch.");
  },

  /** With a port, or after a question for it. */
  "open-port": async ({ project = "", session = "", port: known }, page) => {
    const port =
      known ??
      (await ask({
        title: "Open a port of the sandbox",
        text: "The server on this port gets its own address. The link to it works once.",
        field: {
          label: "Port",
          hint: "For example 5173, the port of a development server.",
          value: "",
          lines: 1,
          required: true,
        },
        confirm: "Create a link",
      }));
    if (port === null) return;
    if (!/^\d{1,5}$/.test(port)) throw new Error("Enter a port from 1 to 65535.");
    const { url } = await post(`${projectPath(project)}/sessions/${session}/preview`, { port: Number(port) });
    page.notice(`The link to port ${port} is ready.`, ["Open the port", url]);
  },

  "open-change-request": async ({ project = "", session = "", title = "", said = "" }, page) => {
    // Without the whole message, its first sentence is a beginning, too.
    const summary = await readSummary(project, session).catch(() => null);
    const typed = await askFor(
      {
        title: "Open a change request",
        text: "It proposes to merge the session branch into the default branch.",
        confirm: "Open",
      },
      {
        // A name that was cut for a list would be cut in the history, too.
        title: { label: "Title", value: title.replace(/\s*\S*…$/, ""), lines: 1, required: true },
        description: {
          ...OPTIONAL,
          value: summary ?? said,
          label: "Description",
          hint: "Optional, in Markdown. For the reviewer. It begins with the agent's last message.",
          lines: 10,
        },
      },
    );
    if (typed === null) return;
    const { number } = await post(`${projectPath(project)}/change-requests`, {
      session_id: session,
      title: typed["title"],
      ...(typed["description"] !== "" && { description: typed["description"] }),
    });
    page.notice(`Change request #${number} is open.`, [
      "Open it",
      projectLink(project, `/change-requests/${number}`),
    ]);
  },

  ...FIRE_ACTIONS,
  "set-secret": setSecret,

  merge: async ({ project = "", number = "", base = "", hidden = "", warned = "", squash = "" }, page) => {
    const sure = await ask({
      title: `Merge #${number} into ${base}?`,
      text: `${squash === "" ? `The commits of the branch become part of ${base}.` : `${base} gets one new commit with all changes. Its message is the title and the description.`}${hidden === "" ? "" : ` ${hidden}`}`,
      confirm: "Merge",
    });
    if (sure === null) return;
    if (warned !== "") {
      const still = await ask({
        title: "Merge it with these mistakes?",
        text: warned,
        confirm: "Merge anyway",
      });
      if (still === null) return;
    }
    try {
      const wish = squash === "" ? {} : { squash: true };
      await post(`${projectPath(project)}/change-requests/${number}/merge`, wish);
    } finally {
      // Also after a refusal, because the branches have changed since they were shown.
      await page.reread();
    }
    page.notice(`#${number} was merged into ${base}.`);
  },

  "close-change-request": async ({ project = "", number = "" }, page) => {
    const sure = await ask({
      title: `Close #${number} without merging it?`,
      text: "The branch does not change. You can open another change request for it.",
      confirm: "Close",
    });
    if (sure === null) return;
    await post(`${projectPath(project)}/change-requests/${number}/close`);
    await page.reread();
    page.notice(`#${number} was closed.`);
  },
};
