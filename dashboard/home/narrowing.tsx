/** The filters of the first page's list. They are folded away, so that the list begins high up on a phone. */
import { useState } from "react";
import type { Project } from "../api/projects.ts";
import { Pick, ShowEverything } from "../ui/parts.tsx";
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
    <label className="pick">
      Name or words
      <input
        type="search"
        data-filter="search"
        ref={(input) => {
          // The address may change meanwhile, but not below the fingers of somebody who types.
          if (input !== null && input !== document.activeElement) input.value = filter.search;
        }}
        maxLength={200}
        placeholder="contains"
        autoComplete="off"
        spellCheck={false}
      />
    </label>
    {isNarrowed(filter) && <ShowEverything />}
  </div>
);

/** A button, and below it the fields. Open from the start while something narrows the list. */
export const useNarrowing = (parts: Narrowing) => {
  const [isOpen, setOpen] = useState(isNarrowed(parts.filter));
  const isShown = isOpen || isNarrowed(parts.filter);
  return {
    button: !isNarrowed(parts.filter) && (
      <button
        type="button"
        className="plain"
        aria-expanded={isShown}
        aria-controls="filters"
        onClick={() => setOpen(!isOpen)}
      >
        Filter
      </button>
    ),
    fields: isShown && <Fields {...parts} />,
  };
};
