/**
 * Pages of a project, with the way back. If the service refuses a page, or what it is about does not exist, the project's
 * head with its tabs stays, and a sentence says why.
 */
import { ApiError, getJson, getJsonOrNull } from "../api/api.ts";
import { h } from "../elements/dom.ts";
import { empty, projectLink, prose } from "../elements/parts.ts";
import { projectHead, projectPath } from "../projects/project.js";
import { knownRole, learnRole } from "./roles.ts";
import type { Project } from "../wire.d.ts";
import type { Data, Live, Page } from "./page.ts";

type Tab = Parameters<typeof projectHead>[1];

/** Why a page shows only its frame, and the reader's role at that time. */
type Absence = { absence: ApiError; project: Project; role: string | null };

/** @param data of a page */
const isAbsence = (data: Data): data is Absence => data.absence instanceof ApiError;

/** Where the list of a tab is, in words. */
const LISTS: Record<string, string> = {
  "": "Show the sessions",
  "/triggers": "Show the triggers",
  "/fires": "Show the runs",
  "/change-requests": "Show the change requests",
  "/environment": "Show the environment",
  "/settings": "Show the settings",
};

/** The last refusal, by its address. While the reader's role stays, it stays. */
let last: { hash: string; absence: Absence } | null = null;

const absenceOf = async (error: unknown, projectId: string): Promise<Absence> => {
  if (!(error instanceof ApiError && [403, 404].includes(error.status))) throw error;
  const project = await getJsonOrNull(projectPath(projectId), [403, 404]);
  if (project === null) throw error;
  if (error.status === 403) await learnRole(projectId, await getJson("/v1/me"));
  return { absence: error, project, role: knownRole() };
};

const absenceView = ({ project, absence: error }: Absence, tab: Tab) => [
  ...projectHead(project, error.status === 403 ? tab : null),
  empty(
    error.status === 403 ? "You cannot read this page." : error.message,
    ...(error.status === 403
      ? prose(error.message)
      : [h("a", { href: projectLink(project.id, tab ?? "") }, LISTS[tab ?? ""] ?? "Show the project")]),
  ),
];

/** Follows what the page follows, and ends with the first answer that the page does not exist for this reader. */
const following = (live: Live): Live => {
  let isOver = false;
  const end = () => {
    if (!isOver) live.end();
    isOver = true;
  };
  return Object.assign(Object.create(live), {
    end,
    drawn: (...[main, data, me]: Parameters<NonNullable<Live["drawn"]>>) => {
      if (isAbsence(data)) end();
      else if (!isOver) live.drawn?.(main, data, me);
    },
  });
};

/** @param page of a project: its first parameter is the project's id @param tab the one that it belongs to */
export const framed = ({ follow, ...page }: Page, tab: Tab): Page => ({
  ...page,
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
  ...(follow !== undefined && {
    follow: (...asked: Parameters<typeof follow>) => following(follow(...asked)),
  }),
  title: (data, live) =>
    isAbsence(data)
      ? data.absence.status === 403
        ? `Not allowed · ${data.project.name}`
        : data.absence.message
      : page.title(data, live),
  view: (data, me, live) => (isAbsence(data) ? absenceView(data, tab) : page.view(data, me, live)),
});
