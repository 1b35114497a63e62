/** What a project offers to a new session, and what it lacks. Without an answer the composer is still of use. */
import { queryOptions } from "@tanstack/react-query";
import { request } from "../api/client.ts";
import { ApiError } from "../api/api.ts";

/** Refusals that are about the repository, which cannot be read now. */
const UNREADABLE = new Set([404, 409, 503]);

const orNull = async <T>(answer: Promise<T>): Promise<T | null> => {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && UNREADABLE.has(error.status)) return null;
    throw error;
  }
};

/** A visit of the page reads again what is older than this. */
const FRESH_MS = 10_000;
const EACH_VISIT = { staleTime: FRESH_MS, refetchOnMount: true } as const;

export const optionsQuery = (pid: string) =>
  queryOptions({
    queryKey: ["session options", pid],
    queryFn: () => orNull(request("GET /v1/projects/:pid/session-options", { params: { pid } })),
    ...EACH_VISIT,
  });

export const setupQuery = (pid: string) =>
  queryOptions({
    queryKey: ["setup", pid],
    queryFn: () => orNull(request("GET /v1/projects/:pid/setup", { params: { pid } })),
    ...EACH_VISIT,
  });
