/** The filters of a project's list of sessions, and how it is read. */
import { infiniteQueryOptions, keepPreviousData } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";
import { request } from "../api/client.ts";
import { withChosen } from "../automations/list.ts";

export type Session = Answer<"GET /v1/projects/:pid/sessions">["sessions"][number];
/** A run that becomes a session when a slot is free. */
export type Run = Answer<"GET /v1/projects/:pid/fires">["fires"][number];

type Activity = keyof typeof ACTIVITY_WORDS;
type Option = readonly [value: string, words: string];

/** Queued runs have no session yet: they are another list of the API. */
const QUEUED = "queued";
/** Older links have this word. */
const WAITING = "waiting";

const activityOf = (status: string): Activity | null => {
  const activity = status === WAITING ? "needs_you" : status;
  return activity in ACTIVITY_WORDS && status !== "needs_you" ? (activity as Activity) : null;
};

/** What the state may be narrowed to. */
export const STATUS_OPTIONS: readonly Option[] = [
  WAITING,
  ...Object.keys(ACTIVITY_WORDS).filter((activity) => activity !== "needs_you" && activity !== QUEUED),
  QUEUED,
].flatMap((status) => {
  const activity = activityOf(status);
  return activity === null ? [] : [[status, ACTIVITY_WORDS[activity].word] as const];
});

/** Who started a session. A trigger's slug follows its colon. */
const STARTERS: readonly Option[] = [
  ["me", "Me"],
  ["person", "People"],
  ["trigger", "Triggers"],
];
const TRIGGER = "trigger:";

/** @param slugs of the project's triggers @param by the chosen one: the address may name a trigger that has left the manifest */
export const starterOptions = (slugs: readonly string[], by: string): readonly Option[] => [
  ...STARTERS,
  ...withChosen(slugs, by.startsWith(TRIGGER) ? by.slice(TRIGGER.length) : "").map(
    (slug) => [TRIGGER + slug, slug] as const,
  ),
];

const SEARCH_MAX = 200;

/** "" for all. */
export interface Filter {
  readonly status: string;
  readonly by: string;
  readonly search: string;
}

/** What the address asks for. Unknown words are ignored. */
export const readFilter = (query: URLSearchParams): Filter => {
  const status = query.get("status") ?? "";
  const by = query.get("by") ?? "";
  return {
    status: activityOf(status) === null ? "" : status,
    by: STARTERS.some(([starter]) => starter === by) || by.startsWith(TRIGGER) ? by : "",
    search: (query.get("search") ?? "").trim().slice(0, SEARCH_MAX),
  };
};

export const isNarrowed = ({ status, by, search }: Filter): boolean => status + by + search !== "";

export const isQueue = ({ status }: Filter): boolean => status === QUEUED;

const starterQuery = async (by: string) => {
  if (by === "") return {};
  if (by.startsWith(TRIGGER)) return { trigger: by.slice(TRIGGER.length) };
  if (by === "trigger") return { started_by: by } as const;
  const person = { started_by: "person" } as const;
  return by === "me" ? { ...person, created_by: (await request("GET /v1/me", {})).user.id } : person;
};

const PAGE = 50;

interface Part {
  readonly sessions: readonly Session[];
  readonly queued: readonly Run[];
  readonly next: string | null;
}

const readPart = async (pid: string, filter: Filter, cursor: string | null): Promise<Part> => {
  const params = { pid };
  const page = { limit: PAGE, ...(cursor !== null && { cursor }) };
  if (isQueue(filter)) {
    const { fires, next_cursor: next } = await request("GET /v1/projects/:pid/fires", {
      params,
      query: { ...page, status: QUEUED },
    });
    return { sessions: [], queued: fires, next };
  }
  const activity = activityOf(filter.status);
  const { sessions, next_cursor: next } = await request("GET /v1/projects/:pid/sessions", {
    params,
    query: {
      ...page,
      ...(activity !== null && { activity }),
      ...(await starterQuery(filter.by)),
      ...(filter.search !== "" && { search: filter.search }),
    },
  });
  return { sessions, queued: [], next };
};

/** Newest first. */
export const listQuery = (pid: string, filter: Filter) =>
  infiniteQueryOptions({
    queryKey: ["sessions of a project", pid, filter],
    queryFn: ({ pageParam }) => readPart(pid, filter, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
  });
