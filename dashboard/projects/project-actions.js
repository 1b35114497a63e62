/** Actions on projects, secrets and sessions, for frame/actions.js. */
import { getJson, patch, post, remove } from "../api/api.ts";
import { ask } from "../frame/dialog.ts";
import { projectLink } from "../elements/parts.ts";
import { projectPath } from "./project.js";
import { checkAgain } from "./repository-check.js";

/** @typedef {import("../frame/actions.js").Action} Action */

/** @type {Record<string, Action>} */
export const PROJECT_ACTIONS = {
  "pause-triggers": async ({ project = "" }, page) => {
    await patch(projectPath(project), { triggers_paused: true });
    page.notice("All triggers of the project are paused.");
  },

  "resume-triggers": async ({ project = "" }, page) => {
    await patch(projectPath(project), { triggers_paused: false });
    page.notice("The triggers of the project run again.");
  },

  "archive-project": async ({ project = "", title = "" }, page) => {
    const sure = await ask({
      title: `Archive ${title}?`,
      text: "It starts no more sessions, and its triggers stop. Nothing is deleted, and you can reactivate it.",
      confirm: "Archive",
    });
    if (sure === null) return;
    await patch(projectPath(project), { status: "archived" });
    page.notice(`${title} is archived.`);
  },

  "reactivate-project": async ({ project = "", title = "" }, page) => {
    await patch(projectPath(project), { status: "active" });
    page.notice(`${title} is active again.`);
  },

  "restore-project": async ({ project = "", title = "" }, page) => {
    await post(`${projectPath(project)}/restore`);
    page.notice(`${title} is restored.`);
  },

  "check-again": () => checkAgain(),

  "sync-project": async ({ project = "" }, page) => {
    const { triggers, errors } = await post(`${projectPath(project)}/sync`);
    page.notice(
      errors.length > 0
        ? "platform.toml was read. It has errors."
        : `platform.toml was read: ${triggers.length === 1 ? "1 trigger" : `${triggers.length} triggers`}.`,
      ["Show the triggers", projectLink(project, "/triggers")],
    );
  },

  /** The key is under one of these names. */
  "try-key": async ({ project = "", secrets = "" }, page) => {
    const names = secrets.split(" ");
    const { secrets: set } = await getJson(`${projectPath(project)}/secrets`);
    const name = names.find((one) => set.some((/** @type {{name: string}} */ secret) => secret.name === one));
    const { outcome, message, advice } = await post(
      `${projectPath(project)}/secrets/${encodeURIComponent(name ?? names[0] ?? "")}/try`,
      {},
    );
    // A reason stays on the page until it is dismissed.
    if (outcome !== "accepted") throw new Error(`${message} ${advice ?? ""}`.trim());
    page.notice(message);
  },

  "rename-session": async ({ project = "", session = "", name: old = "" }, page) => {
    const name = await ask({
      title: "Rename the session",
      text: "The name is shown in lists. The branch keeps its own.",
      field: { label: "Name", value: old, lines: 1, required: true },
      confirm: "Rename",
    });
    if (name === null) return;
    await patch(`${projectPath(project)}/sessions/${session}`, { name });
    page.refresh();
  },

  "archive-session": async ({ project = "", session = "", title = "" }, page) => {
    await patch(`${projectPath(project)}/sessions/${session}`, { archived: true });
    page.notice(`${title} was archived. Its next turn brings it back.`);
  },

  "unarchive-session": async ({ project = "", session = "", title = "" }, page) => {
    await patch(`${projectPath(project)}/sessions/${session}`, { archived: false });
    page.notice(`${title} is among the current sessions again.`);
  },

  "delete-session": async ({ project = "", session = "", title = "", stay = "" }, page) => {
    const sure = await ask({
      title: `Delete ${title}?`,
      text: "The session stops without a save. Its conversation, its log and its saved work are removed. What it pushed stays on its branch.",
      confirm: "Delete",
    });
    if (sure === null) return;
    await remove(`${projectPath(project)}/sessions/${session}`);
    if (stay === "") page.go(projectLink(project));
    else page.notice(`${title} was deleted.`);
  },
};
