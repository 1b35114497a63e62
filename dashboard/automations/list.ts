/**
 * The runs of a project's triggers and the deliveries that it refused, as one list by time. The API has them as two lists, each
 * with a cursor of its own.
 */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import { FIRE_STATUSES } from "../live/live.ts";
import type { Run } from "./words.ts";

export type Refusal = Answer<"GET /v1/projects/:pid/webhook-refusals">["webhook_refusals"][number];

/** "" for all. */
export interface Filter {
  readonly status: Run["status"] | "refused" | "";
  readonly slug: string;
}

const isStatus = (text: string): text is Run["status"] => FIRE_STATUSES.includes(text);

/** What the address asks for. Unknown words are ignored. */
export const readFilter = (query: URLSearchParams): Filter => {
  const status = query.get("status") ?? "";
  return {
    status: isStatus(status) || status === "refused" ? status : "",
    slug: query.get("slug") ?? "",
  };
};

/** Where the reading of one of the two lists goes on. Null: it has nothing more. */
type Position = { readonly cursor: string | null } | null;

interface Positions {
  readonly runs: Position;
  readonly refusals: Position;
}

export interface Part {
  readonly runs: readonly Run[];
  readonly refusals: readonly Refusal[];
  readonly next: Positions;
}

const BEGINNING: Position = { cursor: null };
const positionAfter = (cursor: string | null): Position => (cursor === null ? null : { cursor });

const PAGE = 50;

const pageQuery = ({ slug }: Filter, cursor: string | null) => ({
  limit: PAGE,
  ...(cursor !== null && { cursor }),
  ...(slug !== "" && { slug }),
});

/** A reader who looks for failed runs wants those, too, whose session failed. */
const statusQuery = ({ status }: Filter) => {
  if (status === "failed") return { outcome: status };
  return status === "" || status === "refused" ? {} : { status };
};

const NOTHING = { fires: [], webhook_refusals: [], next_cursor: null };

const readPart = async (pid: string, filter: Filter, { runs, refusals }: Positions): Promise<Part> => {
  const params = { pid };
  const [ran, refused] = await Promise.all([
    runs === null
      ? NOTHING
      : request("GET /v1/projects/:pid/fires", {
          params,
          query: { ...pageQuery(filter, runs.cursor), ...statusQuery(filter) },
        }),
    refusals === null
      ? NOTHING
      : request("GET /v1/projects/:pid/webhook-refusals", {
          params,
          query: pageQuery(filter, refusals.cursor),
        }),
  ]);
  return {
    runs: ran.fires,
    refusals: refused.webhook_refusals,
    next: { runs: positionAfter(ran.next_cursor), refusals: positionAfter(refused.next_cursor) },
  };
};

export const listQuery = (pid: string, filter: Filter) =>
  infiniteQueryOptions({
    queryKey: ["runs", pid, filter],
    queryFn: ({ pageParam }) => readPart(pid, filter, pageParam),
    initialPageParam: {
      runs: filter.status === "refused" ? null : BEGINNING,
      refusals: filter.status === "" || filter.status === "refused" ? BEGINNING : null,
    } as Positions,
    getNextPageParam: ({ next }) => (next.runs === null && next.refusals === null ? undefined : next),
    placeholderData: keepPreviousData,
  });

/** The names of the project's triggers, by their slugs. */
export const namesQuery = (pid: string) =>
  queryOptions({
    queryKey: ["names", pid],
    queryFn: async (): Promise<Names> => {
      const { triggers } = await request("GET /v1/projects/:pid/triggers", { params: { pid } });
      return new Map(triggers.map(({ slug, name }) => [slug, name]));
    },
  });

export type Names = ReadonlyMap<string, string>;

/** A trigger that left the manifest has only its slug. */
export const nameIn = (names: Names, slug: string | null): string => names.get(slug ?? "") ?? slug ?? "";

/** A run, or a refused delivery. */
export type Entry =
  | { readonly at: string; readonly id: string; readonly run: Run }
  | { readonly at: string; readonly id: string; readonly refusal: Refusal };

const newestFirst = (one: Entry, other: Entry): number => {
  if (one.at !== other.at) return one.at < other.at ? 1 : -1;
  return one.id < other.id ? 1 : -1;
};

/**
 * The entries of all parts, newest first. If one of the two lists has more, entries older than its last one are left out: something
 * of that list may stand before them.
 */
export const entriesOf = (parts: readonly Part[]): readonly Entry[] => {
  const runs = parts.flatMap((part) => part.runs.map((run) => ({ at: run.received_at, id: run.id, run })));
  const refusals = parts.flatMap((part) =>
    part.refusals.map((refusal) => ({ at: refusal.at, id: refusal.id, refusal })),
  );
  const next = parts.at(-1)?.next;
  const ends = [
    next?.runs === null ? undefined : runs.at(-1)?.at,
    next?.refusals === null ? undefined : refusals.at(-1)?.at,
  ];
  return [...runs, ...refusals]
    .filter(({ at }) => ends.every((end) => end === undefined || at >= end))
    .toSorted(newestFirst);
};

/** The triggers to choose from. One that was chosen may have left the manifest, and keeps its rows. */
export const withChosen = (slugs: readonly string[], chosen: string): readonly string[] => [
  ...new Set(chosen === "" ? slugs : [...slugs, chosen]),
];

/** The project of a list that can be narrowed to a trigger, when the list is read. */
export const readListed = async (pid: string, list: Promise<unknown>) => {
  const [project] = await Promise.all([
    request("GET /v1/projects/:pid", { params: { pid } }),
    list,
    // If the filter's options cannot be read, the list is still shown.
    queries.query(namesQuery(pid)).catch(() => null),
  ]);
  return project;
};
