/** The filters of the list of sessions. They are in the address, so that a link, a reload and the back button keep them. */

export interface Filter {
  /** The id of a project. "": all projects. */
  readonly project: string;
  /** The id of a person, or `TRIGGERS`. "": everyone. */
  readonly by: string;
  /** A part of the name, or words of messages. */
  readonly search: string;
  /** "yes": only archived sessions. "": only others. */
  readonly archived: string;
}

export const TRIGGERS = "trigger";

export const readFilter = (query: URLSearchParams): Filter => ({
  project: query.get("project") ?? "",
  by: query.get("by") ?? "",
  search: query.get("search") ?? "",
  archived: query.get("archived") === "yes" ? "yes" : "",
});

export const isNarrowed = ({ project, by, search, archived }: Filter): boolean =>
  project + by + search + archived !== "";

/** The parameters of a list that it becomes, besides the project. */
export const listParameters = ({ by, search, archived }: Filter) => ({
  // A search finds archived sessions, too.
  ...(archived === "" ? search === "" && { archived: "false" as const } : { archived: "true" as const }),
  ...(by === TRIGGERS && { started_by: "trigger" as const }),
  ...(by !== "" && by !== TRIGGERS && { started_by: "person" as const, created_by: by }),
  ...(search !== "" && { search }),
});

/** Whether a request that waits for a free session is in the list. */
export const hasQueued = (
  { project, by, search, archived }: Filter,
  queued: { readonly project_id: string; readonly title: string | null },
): boolean =>
  archived === "" &&
  by !== TRIGGERS &&
  (project === "" || queued.project_id === project) &&
  (queued.title ?? "").toLowerCase().includes(search.toLowerCase());
