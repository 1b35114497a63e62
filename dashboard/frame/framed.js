/**
 * Pages of a project, with the way back. If the service refuses a page, or what it is about does not exist, the project's
 * head with its tabs stays, and a sentence says why.
 */
import { ApiError, getJson, getJsonOrNull } from "../api/api.ts";
import { h } from "../elements/dom.js";
import { empty, projectLink, prose } from "../elements/parts.js";
import { projectHead, projectPath } from "../projects/project.js";
import { knownRole, learnRole } from "./roles.ts";

/** @typedef {Parameters<typeof projectHead>[1]} Tab */

/** Why a page shows only its frame, and the reader's role at that time. @typedef {{absence: ApiError, project: import("../wire.d.ts").Project, role: string | null}} Absence */

/** @param {any} data of a page @returns {data is Absence} */
const isAbsence = (data) => data.absence instanceof ApiError;

/** Where the list of a tab is, in words. @type {Record<string, string>} */
const LISTS = {
  "": "Show the sessions",
  "/triggers": "Show the triggers",
  "/fires": "Show the runs",
  "/change-requests": "Show the change requests",
  "/environment": "Show the environment",
  "/settings": "Show the settings",
};

/** The last refusal, by its address. While the reader's role stays, it stays. @type {{hash: string, absence: Absence} | null} */
let last = null;

/** @param {unknown} error @param {string} projectId @returns {Promise<Absence>} */
const absenceOf = async (error, projectId) => {
  if (!(error instanceof ApiError && [403, 404].includes(error.status))) throw error;
  const project = await getJsonOrNull(projectPath(projectId), [403, 404]);
  if (project === null) throw error;
  if (error.status === 403) await learnRole(projectId, await getJson("/v1/me"));
  return { absence: error, project, role: knownRole() };
};

/** @param {Absence} absence @param {Tab} tab */
const absenceView = ({ project, absence: error }, tab) => [
  ...projectHead(project, error.status === 403 ? tab : null),
  empty(
    error.status === 403 ? "You cannot read this page." : error.message,
    ...(error.status === 403
      ? prose(error.message)
      : [h("a", { href: projectLink(project.id, tab ?? "") }, LISTS[tab ?? ""] ?? "Show the project")]),
  ),
];

/**
 * Follows what the page follows, and ends with the first answer that the page does not exist for this reader.
 *
 * @param {import("./app.js").Live} live
 */
const following = (live) => {
  let isOver = false;
  const end = () => {
    if (!isOver) live.end();
    isOver = true;
  };
  return Object.assign(Object.create(live), {
    end,
    /** @param {HTMLElement} main @param {any} data @param {any} me */
    drawn: (main, data, me) => {
      if (isAbsence(data)) end();
      else if (!isOver) live.drawn?.(main, data, me);
    },
  });
};

/**
 * @param {any} page of a project: its first parameter is the project's id
 * @param {Tab} tab the one that it belongs to
 */
export const framed = (page, tab) => ({
  ...page,
  /** @param {string[]} params @param {import("./app.js").Extent} extent */
  load: async (params, extent) => {
    const { hash } = location;
    if (last?.hash === hash && last.absence.role !== null && last.absence.role === knownRole())
      return last.absence;
    last = null;
    try {
      return await page.load(params, extent);
    } catch (error) {
      const absence = await absenceOf(error, params[0] ?? "");
      if (absence.absence.status === 403) last = { hash, absence };
      return absence;
    }
  },
  ...(page.follow !== undefined && {
    /** @param {string[]} params @param {() => void} changed @param {import("../live/live.ts").Listener} project */
    follow: (params, changed, project) => following(page.follow(params, changed, project)),
  }),
  /** @param {any} data @param {any} live */
  title: (data, live) =>
    isAbsence(data)
      ? data.absence.status === 403
        ? `Not allowed · ${data.project.name}`
        : data.absence.message
      : page.title(data, live),
  /** @param {any} data @param {any} me @param {any} live */
  view: (data, me, live) => (isAbsence(data) ? absenceView(data, tab) : page.view(data, me, live)),
});
