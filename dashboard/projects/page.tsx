/** The account's projects. */
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import { queries } from "../api/queries.ts";
import { moment } from "../elements/format.ts";
import { projectLink } from "../elements/parts.ts";
import { repositoryName } from "./project.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Callout, More, Prose, Tag, Time } from "../ui/parts.tsx";
import { absent } from "./absent.tsx";
import { newProject } from "./new-project.tsx";
import { newSession } from "./new-session.tsx";
import { NoProjects } from "./none.tsx";
import { secrets } from "./secrets.tsx";
import { sessions } from "./session-list.tsx";
import { setup } from "./setup.tsx";
import { usage } from "./usage.tsx";

type Project = Answer<"GET /v1/projects">["projects"][number];

const PAGE = 200;

/** Newest first. */
const listQuery = pagedQuery(["list of projects"], (query) =>
  request("GET /v1/projects", { query: { ...query, limit: PAGE } }),
);

const Card = ({ project }: { readonly project: Project }) => (
  <li className="card">
    <h2>
      <a className="cover" href={projectLink(project.id)}>
        {project.name}
      </a>
    </h2>
    <p className="quiet">
      {`${repositoryName(project)} · ${project.default_branch} · created `}
      <Time at={project.created_at} />
    </p>
    <p className="tags">
      {project.status === "archived" && <Tag>archived</Tag>}
      {project.deletes_at !== null && (
        <Tag tone="bad">{`deleted, gone on ${moment(project.deletes_at)}`}</Tag>
      )}
      {project.triggers_paused && <Tag tone="warn">triggers paused</Tag>}
    </p>
    {project.manifest.error !== null && (
      <Callout tone="bad">
        <Prose text={project.manifest.error} />
      </Callout>
    )}
  </li>
);

const Projects = ({ me }: { readonly me: Answer<"GET /v1/me"> | null }) => {
  const list = useInfiniteQuery(listQuery);
  const projects = list.data?.pages.flatMap((page) => page.projects) ?? [];
  return (
    <>
      <header className="head with-action">
        <h1>Projects</h1>
        {projects.length > 0 && (
          <a className="button primary" href="#/new">
            Create a project
          </a>
        )}
      </header>
      {projects.length === 0 ? (
        <NoProjects me={me} />
      ) : (
        <ul className="cards">
          {projects.map((project) => (
            <Card key={project.id} project={project} />
          ))}
        </ul>
      )}
      <More list={list}>Show more projects</More>
    </>
  );
};

export const pages = {
  absent,
  newProject,
  newSession,
  secrets,
  sessions,
  setup,
  usage,
  projects: framedPage<void>({
    load: async () => {
      await queries.infiniteQuery(listQuery);
    },
    title: () => "Projects",
    Body: Projects,
  }),
};
