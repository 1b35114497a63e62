/** The head of a project's pages, with their tabs. */
import type { Project } from "../api/projects.ts";
import { projectLink } from "../elements/parts.ts";
import { moment } from "../elements/format.ts";
import { roleSentence } from "../frame/roles.ts";
import { PHONE, useMedia } from "../ui/media.ts";
import { Callout, Tag, Trail } from "../ui/parts.tsx";
import { Restore } from "./acts.tsx";
import { isArchived, repositoryName, type Tab } from "./project.ts";

const TABS: readonly (readonly [rest: Tab, label: string])[] = [
  ["", "Sessions"],
  ["/triggers", "Triggers"],
  ["/fires", "Runs and deliveries"],
  ["/change-requests", "Change requests"],
  ["/usage", "Usage"],
  ["/environment", "Environment"],
  ["/secrets", "Secrets"],
  ["/settings", "Settings"],
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

/** On a phone, a menu that is called as the shown tab. */
const Tabs = ({ id, tab }: { readonly id: string; readonly tab: Tab | null }) => {
  const isPhone = useMedia(PHONE);
  const links = TABS.map(([rest, label]) => (
    <a key={rest} href={projectLink(id, rest)} aria-current={tab === rest ? "page" : undefined}>
      {label}
    </a>
  ));
  if (!isPhone)
    return (
      <nav className="tabs" aria-label="Project">
        {links}
      </nav>
    );
  return (
    <nav className="tabs-menu" aria-label="Project">
      <details className="menu">
        <summary>{`${TABS.find(([rest]) => rest === tab)?.[1] ?? "More"} ▾`}</summary>
        <div className="menu-items">{links}</div>
      </details>
    </nav>
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
