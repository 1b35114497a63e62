/** The pages of a new trigger, which begins with a template or with nothing, and of a trigger that is changed. */
import type { Answer } from "../../src/cli/contract.ts";
import { triggerTemplates } from "../../src/domain/trigger/templates.ts";
import { ApiError } from "../api/api.ts";
import { request } from "../api/client.ts";
import { projectLink } from "../elements/parts.ts";
import { headOf } from "../projects/head.tsx";
import { isArchived } from "../projects/project.ts";
import { lackedRole } from "../frame/roles.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Tag } from "../ui/parts.tsx";
import type { Wish } from "./changes.ts";
import type { Known } from "./senders.tsx";
import { TriggerForm } from "./trigger-form.tsx";
import { readSecrets } from "./triggers.tsx";
import { wishOfTrigger } from "./typed.ts";

type Project = Answer<"GET /v1/projects/:pid">;

interface Beginning {
  /** In the address. */
  readonly id: string;
  readonly title: string;
  readonly about: string;
  readonly wish: Wish;
}

const NOTHING: readonly Beginning[] = [
  {
    id: "cron",
    title: "On a schedule",
    about: "From nothing: a session starts at each due instant.",
    wish: { type: "cron" },
  },
  {
    id: "webhook",
    title: "On a webhook",
    about: "From nothing: a session starts when another system sends a signed request.",
    wish: { type: "webhook" },
  },
];

const beginnings = ({ default_branch: branch }: Project): readonly Beginning[] => [
  ...triggerTemplates(branch),
  ...NOTHING,
];

const beginningLink = (project: Project, id: string): string =>
  projectLink(project.id, `/triggers/new?from=${id}`);

const Choice = ({ project }: { readonly project: Project }) => (
  <ul className="cards">
    {beginnings(project).map(({ id, title, about, wish }) => (
      <li key={id} className="card">
        <h2>
          <a className="cover" href={beginningLink(project, id)}>
            {title}
          </a>{" "}
          <Tag>{wish.type}</Tag>
        </h2>
        <p>{about}</p>
      </li>
    ))}
  </ul>
);

const NotAllowed = () => (
  <p className="quiet">{`This needs the role ${lackedRole("propose-trigger") ?? "member"} in the project.`}</p>
);

interface New extends Known {
  /** Null: the reader has not chosen yet. */
  readonly from: Beginning | null;
}

const NewTrigger = ({ data: { project, secrets, from } }: { readonly data: New }) => {
  if (isArchived(project)) return <h2>New trigger</h2>;
  if (lackedRole("propose-trigger") !== null) return <NotAllowed />;
  if (from === null)
    return (
      <>
        <h2>New trigger</h2>
        <p className="quiet after-heading">
          Begin with one of these. You can change all of it before you save it.
        </p>
        <Choice project={project} />
      </>
    );
  return (
    <>
      <h2>{`New trigger: ${from.title}`}</h2>
      <p className="quiet after-heading">
        {from.about} <a href={projectLink(project.id, "/triggers/new")}>Begin with something else</a>
      </p>
      <TriggerForm
        key={from.id}
        project={project}
        secrets={secrets}
        wish={from.wish}
        replaces={null}
        keeps={`trigger ${project.id} ${from.id}`}
      />
    </>
  );
};

export const newTrigger = framedPage<New>({
  load: async ([pid = ""], query) => {
    const [project, secrets] = await Promise.all([
      request("GET /v1/projects/:pid", { params: { pid } }),
      readSecrets(pid),
    ]);
    // Older links name the kind.
    const id = query.get("from") ?? query.get("kind");
    return { project, secrets, from: beginnings(project).find((one) => one.id === id) ?? null };
  },
  title: ({ project }) => `New trigger in ${project.name}`,
  head: headOf("/triggers"),
  Body: NewTrigger,
});

interface Edited extends Known {
  readonly slug: string;
  readonly name: string;
  readonly wish: Wish;
}

const EditTrigger = ({ data: { project, secrets, slug, name, wish } }: { readonly data: Edited }) => {
  if (isArchived(project)) return <h2>{name}</h2>;
  if (lackedRole("propose-trigger") !== null) return <NotAllowed />;
  return (
    <>
      <h2>{`Edit ${name}`}</h2>
      <p className="quiet after-heading">
        <code>{slug}</code> <Tag>{wish.type}</Tag> A trigger keeps its slug and its kind.
      </p>
      <TriggerForm
        key={slug}
        project={project}
        secrets={secrets}
        wish={wish}
        replaces={slug}
        keeps={`trigger ${project.id} edit ${slug}`}
      />
    </>
  );
};

export const editTrigger = framedPage<Edited>({
  load: async ([pid = "", encoded = ""]) => {
    const params = { pid };
    const slug = decodeURIComponent(encoded);
    const [project, secrets, listing] = await Promise.all([
      request("GET /v1/projects/:pid", { params }),
      readSecrets(pid),
      request("GET /v1/projects/:pid/triggers", { params }),
    ]);
    const trigger = listing.triggers.find((one) => one.slug === slug);
    if (trigger === undefined)
      throw new ApiError(404, { code: "not_found", error: "The project has no such trigger." });
    return { project, secrets, slug, name: trigger.name, wish: wishOfTrigger(trigger) };
  },
  title: ({ name }) => `Edit ${name}`,
  head: headOf("/triggers"),
  Body: EditTrigger,
});
