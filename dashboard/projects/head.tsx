/** The head of a project's pages, with their tabs. */
import type { Project } from "../api/projects.ts";
import { projectLink } from "../elements/parts.ts";
import { moment } from "../elements/format.ts";
import { roleSentence } from "../frame/roles.ts";
import { PHONE, useMedia } from "../ui/media.ts";
import { Callout, Tag, Trail } from "../ui/parts.tsx";
import { Restore } from "./acts.tsx";
import { isArchived, repositoryName, type Tab } from "./project.ts";

type Linked = readonly [rest: Tab, label: string];

const AUTOMATIONS: readonly Linked[] = [
  ["/triggers", "Triggers"],
  ["/fires", "Runs and deliveries"],
];
const SETTINGS: readonly Linked[] = [
  ["/settings", "General"],
  ["/environment", "Environment"],
  ["/secrets", "Secrets"],
];

/** Each tab is called as its first page, or as what its pages are about. */
const TABS: readonly { readonly label: string; readonly pages: readonly Linked[] }[] = [
  { label: "Sessions", pages: [["", "Sessions"]] },
  { label: "Change requests", pages: [["/change-requests", "Change requests"]] },
  { label: "Automations", pages: AUTOMATIONS },
  { label: "Usage", pages: [["/usage", "Usage"]] },
  { label: "Settings", pages: SETTINGS },
];

const Archived = ({ id }: Project) => (
  <Callout>
    {"This project is archived: it starts no sessions, and its triggers do not run. "}
    <a href={projectLink(id, "/settings")}>Reactivate it in the settings</a>
  </Callout>
);

const Deleted = ({ project }: { readonly project: Project }) => (
  <Callout tone="warn">
    {`This project is deleted. It will be gone, with everything in it, on ${moment(project.deletes_at ?? "")}. `}
    <Restore project={project} label="Restore" />
  </Callout>
);

interface Head {
  readonly project: Project;
  /** Null: the page belongs to no tab. */
  readonly tab: Tab | null;
}

const isIn = (pages: readonly Linked[], tab: Tab | null): boolean => pages.some(([rest]) => rest === tab);

/** On a phone, one menu with all pages, which is called as the shown one. */
const Tabs = ({ id, tab }: { readonly id: string; readonly tab: Tab | null }) => {
  const isPhone = useMedia(PHONE);
  const linksOf = (pages: readonly Linked[]) =>
    pages.map(([rest, label]) => (
      <a key={rest} href={projectLink(id, rest)} aria-current={tab === rest ? "page" : undefined}>
        {label}
      </a>
    ));
  if (isPhone) {
    const pages = TABS.flatMap((one) => one.pages);
    const named = (rest: Tab): string =>
      rest === "/settings" ? "Settings" : (pages.find(([own]) => own === rest)?.[1] ?? "");
    return (
      <nav className="tabs-menu" aria-label="Project">
        <details className="menu">
          <summary>{`${tab === null ? "More" : named(tab)} ▾`}</summary>
          <div className="menu-items">{linksOf(pages.map(([rest]): Linked => [rest, named(rest)]))}</div>
        </details>
      </nav>
    );
  }
  const shown = TABS.find(({ pages }) => isIn(pages, tab));
  return (
    <>
      <nav className="tabs" aria-label="Project">
        {TABS.map(({ label, pages }) => (
          <a
            key={label}
            href={projectLink(id, pages[0]?.[0] ?? "")}
            aria-current={isIn(pages, tab) ? (pages[0]?.[0] === tab ? "page" : "true") : undefined}
          >
            {label}
          </a>
        ))}
      </nav>
      {shown !== undefined && shown.pages.length > 1 && (
        <nav className="tabs parts-of-tab" aria-label={`Pages of ${shown.label}`}>
          {linksOf(shown.pages)}
        </nav>
      )}
    </>
  );
};

export const ProjectHead = ({ project, tab }: Head) => {
  const { id, name, status, default_branch: branch, triggers_paused: isPaused } = project;
  const sentence = roleSentence(id);
  return (
    <>
      <Trail
        steps={[
          ["Projects", "#/projects"],
          [name, tab === null ? projectLink(id) : null],
        ]}
      />
      <header className="head of-project">
        <h1>{name}</h1>
        <p className="quiet">
          {`${repositoryName(project)} · default branch `}
          <code>{branch}</code>
          {isArchived(project) && <Tag>{status}</Tag>}
          {isPaused && <Tag tone="warn">triggers paused</Tag>}
        </p>
        {sentence !== null && <p>{sentence}</p>}
        <Tabs id={id} tab={tab} />
      </header>
      {status === "deleted" && <Deleted project={project} />}
      {/* The settings say it beside the button. */}
      {status === "archived" && tab !== "/settings" && <Archived {...project} />}
    </>
  );
};

/** A page's head, for `framedPage`. */
export const headOf =
  (tab: Tab | null) =>
  ({ project }: { readonly project: Project }) => <ProjectHead project={project} tab={tab} />;
