/** Stops a session once its work is saved, and asks what to do if some cannot be. Few readers stop sessions, so it is loaded later. */
import { ApiError, post } from "../api/api.ts";
import { readAt } from "../api/client.ts";
import { ask, onClose, openDialog } from "../frame/dialog.ts";
import { h } from "../elements/dom.ts";
import { grouped, pathCount, pathsAre, pathsOf, sentence } from "../elements/format.ts";
import { code, projectLink, prose } from "../elements/parts.ts";
import { projectPath } from "../projects/project.ts";
import { listedPaths, stopOutcome } from "./report.ts";
import type { Action } from "../frame/actions.ts";
import type { Saved, Session } from "../wire.d.ts";

type Paths = Saved["pending"];
type Stopped = { project: string; session: string };
/** The session runs on; error: why not everything is saved. */
type Refusal = { pending: Paths; error: string | null };

/** The operator may have raised the time of a save. */
const STOP_TIMEOUT_MS = 15 * 60_000;
/** Pause between two looks at a save. */
const LOOK_MS = 1000;

const pathOf = ({ project, session }: Stopped) =>
  `${projectPath(project)}/sessions/${encodeURIComponent(session)}`;

/** Shows how many paths are left while the service saves. The reader may close it; the save goes on. @returns closes it */
const showProgress = (stopped: Stopped): (() => void) => {
  const line = h("p", { role: "status" }, "Saving unpushed work…");
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id: "dialog-title" }, "Stopping the session"),
    line,
    h("progress", { "aria-labelledby": "dialog-title" }),
    h(
      "p",
      { class: "actions" },
      h("button", { type: "button", class: "decline" }, "Continue in the background"),
    ),
  );
  const dialog = openDialog(form);
  const look = async () => {
    try {
      const { saved } = await readAt<"GET /v1/projects/:pid/sessions/:sid">(pathOf(stopped));
      const left = pathCount(saved?.pending ?? []);
      line.textContent =
        left === 0 ? "Saving unpushed work…" : `Saving unpushed work. ${pathsAre(left)} left.`;
    } catch {
      // The answer to the stop says what is wrong.
    }
  };
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  const looks = setInterval(() => void look(), LOOK_MS);
  onClose(dialog, () => clearInterval(looks));
  return () => {
    clearInterval(looks);
    if (form.isConnected) dialog.close();
  };
};

const stopOnce = async (
  stopped: Stopped,
  save: "require" | "try",
): Promise<{ session: Session } | Refusal> => {
  const close = showProgress(stopped);
  try {
    return { session: await post(`${pathOf(stopped)}/stop`, { save }, STOP_TIMEOUT_MS) };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "not_saved") throw error;
    const { pending = [], saved = null } = error.details ?? {};
    return { pending, error: saved?.error ?? null };
  } finally {
    close();
  }
};

/** @returns null: the session is to run on */
const askAboutUnsaved = (
  { project, session }: Stopped,
  { pending, error }: Refusal,
): Promise<"require" | "try" | null> => {
  const link = h("a", { href: projectLink(project, `/sessions/${session}`) }, "Show the files");
  const without = h("button", { type: "submit", value: "try" }, "Stop without them");
  const dialog = openDialog(
    h(
      "form",
      { method: "dialog", class: "unsaved" },
      h("h2", { id: "dialog-title" }, "The session still runs: not all work is saved"),
      h(
        "p",
        { class: "text" },
        error === null ? "" : [...prose(sentence(error)), " "],
        "The agent's turn was interrupted.",
      ),
      h("ul", { class: "paths", tabindex: 0, "aria-label": "Paths that are not saved" }, pathItems(pending)),
      h(
        "p",
        {},
        "Their newest version is only in the sandbox. If you stop without them, the service tries once more to save them, and what fails again is lost. ",
        link,
      ),
      h(
        "p",
        { class: "actions" },
        h("button", { type: "button", class: "decline" }, "Let it run"),
        without,
        h(
          "button",
          { type: "submit", value: "require", class: "primary", autofocus: true },
          "Wait and try again",
        ),
      ),
    ),
    { wide: true },
  );
  link.addEventListener("click", () => dialog.close(""));
  return new Promise((resolve) => {
    onClose(dialog, () => {
      const { returnValue: choice } = dialog;
      resolve(choice === "require" || choice === "try" ? choice : null);
    });
  });
};

/** A list's entries: the first paths with their reasons. */
const pathItems = (paths: Paths) => {
  const { lines, rest } = listedPaths(paths);
  return [
    ...lines.map(({ path, more, reason }) =>
      h("li", {}, code(path), more > 0 && ` and ${grouped(more)} more`, ": ", prose(reason)),
    ),
    rest > 0 && h("li", { class: "quiet" }, `and ${pathsOf(rest)} more`),
  ];
};

/** What the reader agrees to, by how much of the work must be saved. */
const QUESTIONS = {
  require: {
    title: "Stop this session?",
    text: "The service saves all unpushed work first, and then removes the sandbox. If something cannot be saved, the session runs on and you decide. Pushed commits stay on the session's branch.",
    confirm: "Stop",
  },
  try: {
    title: "Stop without what cannot be saved?",
    text: "The service tries once more to save all unpushed work, and then removes the sandbox. Work that cannot be saved then is lost. Pushed commits stay on the session's branch.",
    confirm: "Stop without it",
    danger: true,
  },
};

const stop: (...given: Parameters<Action>) => Promise<void> = async (
  { project = "", session = "", save: wish = "require" },
  page,
) => {
  let save: "require" | "try" | null = wish === "try" ? "try" : "require";
  const sure = await ask(QUESTIONS[save]);
  if (sure === null) return;
  const stopped = { project, session };
  while (save !== null) {
    // eslint-disable-next-line no-await-in-loop -- each try is the reader's decision
    const outcome = await stopOnce(stopped, save);
    if ("session" in outcome) {
      page.notice(stopOutcome(outcome.session));
      page.refresh();
      return;
    }
    // eslint-disable-next-line no-await-in-loop
    save = await askAboutUnsaved(stopped, outcome);
  }
  page.notice("The session runs on.");
  page.refresh();
};

export const actions: Record<string, Action> = { "stop-session": stop };
