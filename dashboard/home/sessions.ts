/** The sessions of all projects, in the groups in which people see them. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { projectPath } from "../projects/project.ts";
import { type Filter, listParameters } from "./filter.ts";
import { activitiesIn, type ActivityGroup } from "../../src/domain/session/activity-words.ts";

export type Session = Answer<"GET /v1/sessions">["sessions"][number];
type Activity = Session["activity"];

/** In the order of the page. */
const GROUPS = ["needs_you", "working", "ready_for_review", "done"] as const satisfies ActivityGroup[];

/** The last group is folded to its newest sessions. */
const FIRST_SHOWN: Readonly<Record<ActivityGroup, number>> = {
  needs_you: 50,
  working: 50,
  ready_for_review: 25,
  done: 5,
};
const MORE_SHOWN = 25;

/** Archived sessions are one list, in the place of the last group. */
export const groupsIn = ({ archived }: Pick<Filter, "archived">): readonly ActivityGroup[] =>
  archived === "" ? GROUPS : ["done"];

/** A group's sessions, newest first. */
export const groupQuery = (group: ActivityGroup, filter: Filter) =>
  infiniteQueryOptions({
    enabled: groupsIn(filter).includes(group),
    queryKey: ["sessions", group, filter],
    queryFn: ({ pageParam: cursor }) => {
      const query = {
        ...(filter.archived === "" && { activity: activitiesIn(group) }),
        limit: cursor === null ? FIRST_SHOWN[group] : MORE_SHOWN,
        ...listParameters(filter),
        ...(cursor !== null && { cursor }),
      };
      const { project: pid } = filter;
      return pid === ""
        ? request("GET /v1/sessions", { query })
        : request("GET /v1/projects/:pid/sessions", { params: { pid }, query });
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
  });

/** Where the session is in the API. */
export const sessionPath = ({ project_id: project, id }: Pick<Session, "project_id" | "id">): string =>
  `${projectPath(project)}/sessions/${id}`;

/** A question waits longer than a failure: the agent cannot go on. */
export const byUrgency = (sessions: readonly Session[]): readonly Session[] =>
  sessions.toSorted((one, other) => rank(one.activity) - rank(other.activity));

const rank = (activity: Activity): number => (activity === "failed" ? 1 : 0);
