/** What stands in the place of a project's page that the service refuses, or that is about nothing: the project's head, and why. */
import type { ApiError } from "../api/api.ts";
import type { Project } from "../api/projects.ts";
import { projectLink } from "../elements/parts.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Empty, Prose } from "../ui/parts.tsx";
import { ProjectHead } from "./head.tsx";
import type { Tab } from "./project.ts";

/** Where the list of a tab is, in words. */
const LISTS: Readonly<Partial<Record<Tab, string>>> = {
  "": "Show the sessions",
  "/triggers": "Show the triggers",
  "/fires": "Show the runs",
  "/change-requests": "Show the change requests",
  "/environment": "Show the environment",
  "/settings": "Show the settings",
};

interface Absence {
  readonly absence: ApiError;
  readonly project: Project;
  /** The one that the page belongs to. */
  readonly tab: Tab;
}

const Absent = ({ data: { absence, project, tab } }: { readonly data: Absence }) =>
  absence.status === 403 ? (
    <Empty title="You cannot read this page.">
      <Prose text={absence.message} />
    </Empty>
  ) : (
    <Empty title={absence.message}>
      <a href={projectLink(project.id, tab)}>{LISTS[tab] ?? "Show the project"}</a>
    </Empty>
  );

export const absent = framedPage<Absence>({
  load: () => Promise.reject(new Error("the frame has read it")),
  title: ({ absence, project }) =>
    absence.status === 403 ? `Not allowed · ${project.name}` : absence.message,
  head: ({ absence, project, tab }) => (
    <ProjectHead project={project} tab={absence.status === 403 ? tab : null} />
  ),
  Body: Absent,
});
