/**
 * Pages of a project, with the way back. If the service refuses a page, or what it is about does not exist, the project's
 * head with its tabs stays, and a sentence says why (projects/absent.tsx).
 */
import { ApiError } from "../api/api.ts";
import { orNull, readAt, request } from "../api/client.ts";
import { projectPath, type Tab } from "../projects/project.ts";
import { lazyPage } from "./later.ts";
import { knownRole, learnRole } from "./roles.ts";
import type { Project } from "../wire.d.ts";
import type { Data, Live, Page } from "./page.ts";

/** Why a page shows only its frame, and the reader's role at that time. */
type Absence = { absence: ApiError; project: Project; tab: Tab; role: string | null };

const absent = lazyPage("projects", "absent");

/** @param data of a page */
const isAbsence = (data: Data): data is Absence => data.absence instanceof ApiError;

/** The last refusal, by its address. While the reader's role stays, it stays. */
let last: { hash: string; absence: Absence } | null = null;

const absenceOf = async (error: unknown, projectId: string, tab: Tab): Promise<Absence> => {
  if (!(error instanceof ApiError && [403, 404].includes(error.status))) throw error;
  const project = await orNull(readAt<"GET /v1/projects/:pid">(projectPath(projectId)), [403, 404]);
  if (project === null) throw error;
  if (error.status === 403) await learnRole(projectId, await request("GET /v1/me", {}));
  await absent.ready?.();
  return { absence: error, project, tab, role: knownRole() };
};

type Follow = NonNullable<Page["follow"]>;

/** Follows what the page follows, until an answer says that the page does not exist for this reader. If it exists later, it is followed again. */
const following = (follow: Follow | undefined, asked: Parameters<Follow>): Live => {
  let live: Live | null = follow?.(...asked) ?? null;
  let shown: Live | null = null;
  return {
    end: () => {
      live?.end();
      shown?.end();
    },
    drawn: (main, data, me) => {
      if (isAbsence(data)) {
        live?.end();
        live = null;
        shown ??= absent.follow?.(...asked) ?? null;
        shown?.drawn?.(main, data, me);
        return;
      }
      shown?.end();
      shown = null;
      live ??= follow?.(...asked) ?? null;
      live?.drawn?.(main, data, me);
    },
  };
};

/** @param page of a project: its first parameter is the project's id @param tab the one that it belongs to */
export const inProject = ({ follow, ...page }: Page, tab: Tab): Page => ({
  ...page,
  load: async (params, extent) => {
    const { hash } = location;
    if (last?.hash === hash && last.absence.role !== null && last.absence.role === knownRole())
      return last.absence;
    last = null;
    try {
      return await page.load(params, extent);
    } catch (error) {
      const absence = await absenceOf(error, params[0] ?? "", tab);
      if (absence.absence.status === 403) last = { hash, absence };
      return absence;
    }
  },
  follow: (...asked) => following(follow, asked),
  title: (data, live) => (isAbsence(data) ? absent.title(data, null) : page.title(data, live)),
  view: (data, me, live) => (isAbsence(data) ? absent.view(data, me, null) : page.view(data, me, live)),
});
