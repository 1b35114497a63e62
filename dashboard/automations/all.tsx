/** The triggers of all projects that the reader sees. */
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import { queries } from "../api/queries.ts";
import { counted } from "../elements/format.ts";
import { projectLink } from "../elements/parts.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Empty, More, Tag, Time } from "../ui/parts.tsx";
import { LastRun, Schedule, State, type Summary } from "./row-parts.tsx";

type Project = Answer<"GET /v1/triggers">["projects"][number];

/** How many projects are read at a time. Those without triggers are not shown. */
const projectsQuery = pagedQuery(["triggers of all"], (query) => request("GET /v1/triggers", { query }));

const TriggerRow = ({ project, trigger }: { readonly project: Project; readonly trigger: Summary }) => {
  const { slug, name, type, enabled, cron, next_fire_at: next, last_fire: last } = trigger;
  return (
    <li className="row two">
      <span className="row-main">
        <span className="named">
          <a
            className="cover"
            href={projectLink(project.id, "/triggers")}
            aria-label={`${name} of ${project.name}`}
          >
            {name}
          </a>
          {name !== slug && <code>{slug}</code>}
          <Tag>{type}</Tag>
          <State isEnabled={enabled} isPaused={project.triggers_paused} />
        </span>
        <span className="quiet">
          {cron === undefined ? "When a delivery comes" : <Schedule {...trigger} cron={cron} />}
        </span>
      </span>
      <span className="row-side">
        {next !== null && (
          <span>
            <span className="quiet">next </span>
            <Time at={next} />
          </span>
        )}
        {last === null ? (
          <span className="quiet">never ran</span>
        ) : (
          <span>
            <span className="quiet">last </span>
            <LastRun pid={project.id} newest={last} />
          </span>
        )}
      </span>
    </li>
  );
};

const ProjectTriggers = ({ project }: { readonly project: Project }) => {
  const { id, name, triggers, errors, stale } = project;
  return (
    <section>
      <h2>
        <a href={projectLink(id, "/triggers")}>{name}</a>
      </h2>
      {(stale || errors > 0) && (
        <p>
          {stale && <Tag tone="warn">platform.toml cannot be read</Tag>}{" "}
          {errors > 0 && <Tag tone="bad">{counted(errors, "mistake")}</Tag>}
        </p>
      )}
      {triggers.length === 0 ? (
        <p className="quiet">No trigger of it can run.</p>
      ) : (
        <ul className="rows">
          {triggers.map((trigger) => (
            <TriggerRow key={trigger.slug} project={project} trigger={trigger} />
          ))}
        </ul>
      )}
    </section>
  );
};

const All = () => {
  const list = useInfiniteQuery(projectsQuery);
  const projects = list.data?.pages.flatMap((page) => page.projects) ?? [];
  return (
    <>
      <header className="head">
        <h1>Automations</h1>
        <p className="quiet">What starts sessions by itself, in all your projects.</p>
      </header>
      {projects.length === 0 && !list.hasNextPage ? (
        <Empty title="No triggers yet.">
          A trigger starts sessions on a schedule, or when another system sends a signed request.{" "}
          <a href="#/projects">Choose a project</a> and open its Automations.
        </Empty>
      ) : (
        projects.map((project) => <ProjectTriggers key={project.id} project={project} />)
      )}
      <More list={list}>Look at older projects</More>
    </>
  );
};

export const allTriggers = framedPage<void>({
  load: async () => {
    await queries.infiniteQuery(projectsQuery);
  },
  title: () => "Automations",
  Body: All,
});
