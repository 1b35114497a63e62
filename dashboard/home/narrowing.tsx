/** The filters of the first page's list. They are folded away, so that the list begins high up on a phone. */
import type { Project } from "../api/projects.ts";
import { useFold } from "../ui/list-filters.tsx";
import { Pick, SearchPick, ShowEverything } from "../ui/parts.tsx";
import { type Filter, isNarrowed, TRIGGERS } from "./filter.ts";

export interface Narrowing {
  readonly filter: Filter;
  readonly projects: readonly Project[];
  /** The reader's id. Null: not known yet. */
  readonly reader: string | null;
}

const Fields = ({ filter, projects, reader }: Narrowing) => (
  <div className="filters" id="filters" role="group" aria-label="Filter">
    {projects.length > 1 && (
      <Pick
        name="project"
        label="Project"
        all="All"
        value={filter.project}
        options={projects.map(({ id, name }) => [id, name] as const)}
      />
    )}
    <Pick
      name="by"
      label="Started by"
      all="Everyone"
      value={filter.by}
      options={[...(reader === null ? [] : [[reader, "Me"] as const]), [TRIGGERS, "Triggers"]]}
    />
    <Pick
      name="archived"
      label="Show"
      all={filter.search === "" ? "Current sessions" : "All sessions"}
      value={filter.archived}
      options={[["yes", "Archived sessions"]]}
    />
    <SearchPick name="search" label="Name or words" value={filter.search} />
    {isNarrowed(filter) && <ShowEverything />}
  </div>
);

/** A button, and below it the fields. */
export const useNarrowing = (parts: Narrowing) => {
  const { isShown, button } = useFold("filters", isNarrowed(parts.filter));
  return { button, fields: isShown && <Fields {...parts} /> };
};
