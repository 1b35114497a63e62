/** In which projects a person may start sessions. The service decides; the page only leaves out what it would refuse. */
import { queryOptions, useQueries } from "@tanstack/react-query";
import { request } from "../api/client.ts";
import type { Me } from "../wire.d.ts";
import type { Project } from "./draft.ts";

/** A role changes seldom. */
const FRESH_MS = 60_000;

const membersQuery = (pid: string) =>
  queryOptions({
    queryKey: ["members", pid],
    queryFn: async () => (await request("GET /v1/projects/:pid/members", { params: { pid } })).members,
    staleTime: FRESH_MS,
  });

/** @returns those of `projects` in which she may, as far as the answers have arrived */
export const useStartable = (me: Me | null, projects: readonly Project[]): readonly Project[] => {
  // The highest grant counts, so that only the others need a look at her own one.
  const isGranted = ({ default_role: role }: Project): boolean =>
    me?.user.role === "owner" || role === "member";
  const unclear = me === null ? [] : projects.filter((project) => !isGranted(project));
  const answers = useQueries({ queries: unclear.map(({ id }) => membersQuery(id)) });
  const own = new Set(
    unclear
      .filter((_, at) =>
        answers[at]?.data?.some(({ user, role }) => user.id === me?.user.id && role !== "viewer"),
      )
      .map(({ id }) => id),
  );
  return me === null ? [] : projects.filter((project) => isGranted(project) || own.has(project.id));
};
