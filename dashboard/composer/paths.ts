/** The files that `@` offers: those of the repository, and in a session what its workspace has changed. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { orNull, request } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import type { WorkspaceChanges } from "../wire.d.ts";
import { type Known, type Listing, listingOf } from "./completion.ts";

/** They are read once for a visit of the page. @param ref empty: the default branch */
const pathsQuery = (pid: string, ref: string) =>
  queryOptions({
    queryKey: ["paths", pid, ref],
    queryFn: () =>
      request("GET /v1/projects/:pid/paths", { params: { pid }, query: ref === "" ? {} : { ref } }),
    staleTime: Infinity,
    gcTime: Infinity,
  });

/** Why a session's workspace cannot be read now. Then its branch is what is known. */
const UNREADABLE = [404, 409, 503, 504];

const changesQuery = (pid: string, sid: string) =>
  queryOptions({
    queryKey: ["workspace changes", pid, sid],
    queryFn: () =>
      orNull(
        request("GET /v1/projects/:pid/sessions/:sid/workspace/changes", { params: { pid, sid } }),
        UNREADABLE,
      ),
    staleTime: 0,
  });

const withChanges = (paths: readonly string[], { files_changed: files }: WorkspaceChanges) => {
  const all = new Set(paths);
  for (const { path, status } of files) {
    if (status === "removed") all.delete(path);
    else all.add(path);
  }
  return [...all];
};

interface Place {
  readonly pid: string;
  /** A branch. Empty: the default branch. */
  readonly ref: string;
  /** Of a session, whose branch it is. */
  readonly sid?: string;
}

/** The session of an address in the API: its branch has its id as its name. */
export const placeOfSession = (path: string): Place => {
  const [, , , pid = "", , sid = ""] = path.split("/");
  return { pid, ref: sid, sid };
};

/** @param isWanted each time it becomes true, the workspace is looked at again */
export const usePaths = ({ pid, ref, sid = "" }: Place, isWanted: boolean): Known<Listing> => {
  const { data, error } = useQuery({ ...pathsQuery(pid, ref), enabled: isWanted }, queries);
  const { data: changes } = useQuery({ ...changesQuery(pid, sid), enabled: isWanted && sid !== "" }, queries);
  const value = useMemo(() => {
    if (data === undefined) return null;
    const { paths, total } = data;
    // Files that are not among the first ones may be changed, too.
    if (changes === undefined || changes === null) return listingOf(paths, total);
    const all = withChanges(paths, changes);
    return listingOf(all, Math.max(total, all.length));
  }, [data, changes]);
  const problem = error?.message ?? null;
  return useMemo(() => ({ value, problem }), [value, problem]);
};
