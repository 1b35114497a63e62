/** A project's settings, by section: its name, its people, its repository, its triggers, its saved work, its end. */
import { type ReactNode, useEffect, useRef } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import type { Project } from "../api/projects.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { projectLink } from "../elements/parts.ts";
import { TriggersSwitch } from "../projects/acts.tsx";
import { headOf } from "../projects/head.tsx";
import { isArchived } from "../projects/project.ts";
import { type Checking, useConnection } from "../projects/repository-check.tsx";
import { lackedRole } from "../frame/roles.ts";
import { optionsQuery, setupQuery } from "../home/options.ts";
import { ofProject, providersQuery } from "../providers/place.ts";
import { RoleAct } from "../ui/act.tsx";
import { setFilter, useAddressQuery } from "../ui/address.ts";
import { Form, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { AgentsPart } from "./agents.tsx";
import { DeletePart } from "./delete.tsx";
import { type Members, MembersPart, readMembers } from "./members.tsx";
import { ModelsPart } from "./models.tsx";
import { RepositoryPart } from "./repository.tsx";
import { SavesPart } from "./saves.tsx";

interface Shown {
  readonly project: Project;
  /** Null: the repository cannot be reached. */
  readonly gitUrl: string | null;
  readonly members: Members;
  /** Null: the node that has the saves cannot be reached. */
  readonly saves: Answer<"GET /v1/projects/:pid/saves"> | null;
}

const NameAndBranch = ({ project: { id: pid, name, default_branch: branch } }: Shown) => {
  const save = async (typed: Readonly<Record<string, string>>): Promise<void> => {
    const { name: newName = "", default_branch: newBranch = "" } = typed;
    const payload = {
      ...(newName !== "" && newName !== name && { name: newName }),
      ...(newBranch !== "" && newBranch !== branch && { default_branch: newBranch }),
    };
    if (Object.keys(payload).length > 0)
      await request("PATCH /v1/projects/:pid", { params: { pid }, payload });
    notice("The project is saved.");
  };
  return (
    <Form key={`${name} ${branch}`} submit="Save" sending="Saving…" onSend={save}>
      <TextField name="name" label="Name" initial={name} required />
      <TextField
        name="default_branch"
        label="Default branch"
        hint="An existing branch. Sessions start from it, change requests merge into it, and its `platform.toml` has the triggers."
        initial={branch}
        required
        mono
      />
    </Form>
  );
};

const Triggers = ({ project }: Shown) => (
  <>
    <p>
      {isArchived(project)
        ? `The project is ${project.status}, so its triggers do not fire.`
        : project.triggers_paused
          ? "All triggers are paused. Webhook deliveries get a 404 response, and schedules do not run."
          : "The triggers run. A pause stops all of them at once; waiting runs stay in the queue."}
    </p>
    <p className="actions">
      <TriggersSwitch pid={project.id} isPaused={project.triggers_paused} />
    </p>
  </>
);

const archive = async ({ id: pid, name }: Project): Promise<void> => {
  const sure = await ask({
    title: `Archive ${name}?`,
    text: "It starts no more sessions, and its triggers stop. Nothing is deleted, and you can reactivate it.",
    confirm: "Archive",
  });
  if (sure === null) return;
  await request("PATCH /v1/projects/:pid", { params: { pid }, payload: { status: "archived" } });
  notice(`${name} is archived.`);
};

const reactivate = async ({ id: pid, name }: Project): Promise<void> => {
  await request("PATCH /v1/projects/:pid", { params: { pid }, payload: { status: "active" } });
  notice(`${name} is active again.`);
};

const Archive = ({ project }: Shown) => (
  <>
    <p>
      {project.status === "archived"
        ? "The project is archived: it starts no sessions."
        : "An archived project starts no sessions. Its repository, its sessions and its change requests stay. You can reactivate it."}
    </p>
    <p className="actions">
      <RoleAct
        entry={project.status === "archived" ? "reactivate-project" : "archive-project"}
        label={project.status === "archived" ? "Reactivate the project" : "Archive the project"}
        className=""
        does={() => (project.status === "archived" ? reactivate(project) : archive(project))}
      />
    </p>
  </>
);

interface Section {
  /** In the address. */
  readonly id: string;
  readonly title: (project: Project) => string;
  /** The document about it, below `docs`. */
  readonly about: string;
  /** An entry of roles.ts that a reader needs for it. */
  readonly entry?: string;
  readonly view: (shown: Shown, checking: Checking) => ReactNode;
}

/** What a page of its own is for. Page and document are called as the section is. */
const elsewhere = (
  id: string,
  title: string,
  { link, after }: { readonly link: string; readonly after: string },
): Section => ({
  id,
  title: () => title,
  about: `use/${id}`,
  view: ({ project }) => (
    <p>
      <a href={projectLink(project.id, `/${id}`)}>{link}</a>
      {after}
    </p>
  ),
});

const SECTIONS: readonly Section[] = [
  {
    id: "general",
    title: () => "Name and branch",
    about: "use/first-project",
    entry: "save-project",
    view: (shown) => <NameAndBranch {...shown} />,
  },
  {
    id: "members",
    title: () => "Members",
    about: "use/people",
    view: ({ project, members }) => <MembersPart project={project} found={members} />,
  },
  {
    id: "repository",
    title: () => "Repository",
    about: "use/repositories",
    view: ({ project, gitUrl }, checking) => (
      <RepositoryPart project={project} gitUrl={gitUrl} checking={checking} />
    ),
  },
  {
    id: "agents",
    title: () => "Agents",
    about: "use/agents",
    view: ({ project }) => <AgentsPart pid={project.id} />,
  },
  {
    id: "models",
    title: () => "Models and keys",
    about: "use/models",
    view: ({ project }) => <ModelsPart pid={project.id} />,
  },
  {
    id: "triggers",
    title: () => "Triggers",
    about: "use/triggers",
    view: (shown) => <Triggers {...shown} />,
  },
  {
    id: "saved-work",
    title: () => "Saved work",
    about: "use/saved-work",
    view: ({ project, saves }) => <SavesPart pid={project.id} saves={saves} />,
  },
  elsewhere("connectors", "Connectors", {
    link: "Connectors",
    after: " let agents use the tools of other servers, with credentials that agents never see.",
  }),
  elsewhere("notifications", "Notifications", {
    link: "Outbound webhooks",
    after:
      " tell Slack, Discord or your own systems when a session waits, a run fails, or a change request is opened.",
  }),
  elsewhere("audit", "Audit", { link: "The audit record", after: " says who did what in this project." }),
  {
    id: "archive",
    title: ({ status }) => (status === "archived" ? "Archived" : "Archive"),
    about: "use/delete-project",
    entry: "archive-project",
    view: (shown) => <Archive {...shown} />,
  },
  {
    id: "delete",
    title: ({ status }) => (status === "deleted" ? "Deleted" : "Delete this project"),
    about: "use/delete-project",
    entry: "delete-project",
    view: ({ project, saves }) => <DeletePart project={project} saves={saves} />,
  },
];

const idOf = ({ id }: Section): string => `settings-${id}`;

/** Shows the section that the address names. */
const useNamedSection = (): string | null => {
  const named = useAddressQuery().get("section");
  const shown = useRef<string | null>(null);
  useEffect(() => {
    if (named === shown.current) return;
    shown.current = named;
    const heading = document.getElementById(`settings-${named}`);
    heading?.scrollIntoView();
    heading?.focus({ preventScroll: true });
  }, [named]);
  return named;
};

const Settings = ({ data }: { readonly data: Shown }) => {
  const named = useNamedSection();
  const checking = useConnection(data.project);
  // A deleted project is restored, and then archived.
  const sections = SECTIONS.filter(
    ({ id, entry }) =>
      (entry === undefined || lackedRole(entry) === null) &&
      !(id === "archive" && data.project.status === "deleted"),
  );
  return (
    <div className="settings">
      <nav className="settings-list" aria-label="Settings">
        <ul>
          {sections.map((section) => (
            <li key={section.id}>
              <button
                type="button"
                className="plain"
                aria-current={section.id === named ? "true" : undefined}
                onClick={() => {
                  // Named twice, it is shown twice.
                  if (section.id === named) document.getElementById(idOf(section))?.scrollIntoView();
                  else setFilter("section", section.id);
                }}
              >
                {section.title(data.project)}
              </button>
            </li>
          ))}
        </ul>
      </nav>
      <div className="settings-parts">
        {sections.map((section) => (
          <section key={section.id} aria-labelledby={idOf(section)}>
            <div className="with-action">
              <h2 id={idOf(section)} tabIndex={-1}>
                {section.title(data.project)}
              </h2>
              <a
                href={`/docs/guide/${section.about}`}
                target="_blank"
                aria-label={`About this: ${section.title(data.project)}`}
              >
                About this
              </a>
            </div>
            {section.view(data, checking)}
          </section>
        ))}
      </div>
    </div>
  );
};

export const pages = {
  settings: framedPage<Shown>({
    load: async ([pid = ""]) => {
      const params = { pid };
      // They are shown once they are known.
      for (const reading of [
        queries.query({ ...optionsQuery(pid), staleTime: 0 }),
        queries.query({ ...setupQuery(pid), staleTime: 0 }),
        queries.query(providersQuery(ofProject(pid))),
      ])
        void reading.catch(() => undefined);
      const [project, setup, members, saves] = await Promise.all([
        request("GET /v1/projects/:pid", { params }),
        // The repository's server may be away.
        orNull(request("GET /v1/projects/:pid/setup", { params }), [403, 404, 409, 503]),
        readMembers(pid),
        orNull(request("GET /v1/projects/:pid/saves", { params }), [503]),
      ]);
      return { project, gitUrl: setup?.repository.url ?? null, members, saves };
    },
    title: ({ project }) => `Settings of ${project.name}`,
    head: headOf("/settings"),
    Body: Settings,
  }),
};
