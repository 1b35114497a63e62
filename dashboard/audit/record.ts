/** Reading the audit record: what the address asks for, and the parts of the record that were read. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { ApiError } from "../api/api.ts";
import { ACTION_WORDS, type AuditEvent } from "./words.ts";

/** "" for all. */
export interface Filter {
  readonly actor: string;
  readonly action: AuditEvent["action"] | "";
  readonly project: string;
  readonly since: string;
  readonly until: string;
}

const ID = /^[0-9a-f-]{36}$/;
const DAY = /^\d{4}-\d\d-\d\d$/;

const isId = (value: string): boolean => ID.test(value);
const isDay = (value: string): boolean => DAY.test(value) && !Number.isNaN(Date.parse(value));
const isAction = (value: string): value is AuditEvent["action"] => value in ACTION_WORDS;

/** What the address asks for. Unknown words are ignored. @param project null: the whole account */
export const readFilter = (query: URLSearchParams, project: string | null): Filter => {
  const valueOf = (name: string, isValid: (value: string) => boolean): string => {
    const value = query.get(name) ?? "";
    return isValid(value) ? value : "";
  };
  const action = query.get("action") ?? "";
  return {
    actor: valueOf("actor", isId),
    action: isAction(action) ? action : "",
    project: project === null ? valueOf("project", isId) : "",
    since: valueOf("since", isDay),
    until: valueOf("until", isDay),
  };
};

/** The beginning of a day in the reader's zone. @param later days after it */
const beginning = (day: string, later: number): string => {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date + later).toISOString();
};

const PAGE = 50;

const apiQuery = ({ actor, action, since, until }: Filter, cursor: string | null) => ({
  limit: PAGE,
  ...(cursor !== null && { cursor }),
  ...(actor !== "" && { actor }),
  ...(action !== "" && { action }),
  ...(since !== "" && { since: beginning(since, 0) }),
  ...(until !== "" && { until: beginning(until, 1) }),
});

const readPage = (pid: string | null, filter: Filter, cursor: string | null) => {
  const query = apiQuery(filter, cursor);
  if (pid !== null) return request("GET /v1/projects/:pid/audit", { params: { pid }, query });
  const { project } = filter;
  return request("GET /v1/audit", { query: { ...query, ...(project !== "" && { project }) } });
};

const isForbidden = (error: unknown): boolean => error instanceof ApiError && error.status === 403;

/** The record, newest first. A page is null if the reader may not see it. @param pid null: of the whole account */
export const recordQuery = (pid: string | null, filter: Filter) =>
  infiniteQueryOptions({
    queryKey: ["audit", pid, filter],
    queryFn: async ({ pageParam }): Promise<Answer<"GET /v1/audit"> | null> => {
      try {
        return await readPage(pid, filter, pageParam);
      } catch (error) {
        if (isForbidden(error)) return null;
        throw error;
      }
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last?.next_cursor,
    placeholderData: keepPreviousData,
  });

/** The people to choose from. A token of one project reads no list of people. */
export const peopleQuery = queryOptions({
  queryKey: ["people"],
  queryFn: async () => {
    try {
      return (await request("GET /v1/people", { query: { limit: 200 } })).people;
    } catch (error) {
      if (isForbidden(error)) return [];
      throw error;
    }
  },
});

const workOf = ({ request_id, action, target }: AuditEvent): string =>
  JSON.stringify([request_id, action, target]);

/** Work that has ended has two rows, and the second one says it all. A first row alone is shown. @param events newest first */
export const withoutBegun = (events: readonly AuditEvent[]): readonly AuditEvent[] => {
  const ended = new Set(events.filter(({ outcome }) => outcome !== "begun").map(workOf));
  return events.filter((event) => event.outcome !== "begun" || !ended.has(workOf(event)));
};
