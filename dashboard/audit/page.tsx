/** The audit record: who did what in the account, or in a project. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { projectsQuery } from "../api/projects.ts";
import { queries } from "../api/queries.ts";
import { browserName } from "../account/browser-name.ts";
import { moment, ZONE } from "../elements/format.ts";
import { ProjectHead } from "../projects/head.tsx";
import { useAddressQuery } from "../ui/address.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { DayPick, Detail, Empty, More, Pick, Row, ShowEverything, Tag } from "../ui/parts.tsx";
import { type Filter, peopleQuery, readFilter, recordQuery, withoutBegun } from "./record.ts";
import { ACTION_WORDS, actionText, actorName, type AuditEvent } from "./words.ts";

interface Named {
  readonly id: string;
  readonly name: string;
}

/** By name. An actor that is not in the list, for example an agent, stays chosen. */
const optionsOf = (among: readonly Named[], chosen: string): readonly (readonly [string, string])[] => {
  const options = among.map(({ id, name }) => [id, name] as const);
  const isListed = chosen === "" || among.some(({ id }) => id === chosen);
  return isListed ? options : [...options, [chosen, chosen]];
};

interface Shown {
  readonly filter: Filter;
  readonly people: readonly Named[];
  /** Empty on a project's page. */
  readonly projects: readonly Named[];
}

const Filters = ({ filter, people, projects }: Shown) => (
  <div className="filters" role="search" aria-label="Audit record">
    {people.length > 0 && (
      <Pick
        name="actor"
        label="Person"
        all="everyone"
        value={filter.actor}
        options={optionsOf(people, filter.actor)}
      />
    )}
    <Pick
      name="action"
      label="Action"
      all="all"
      value={filter.action}
      options={Object.entries(ACTION_WORDS)}
    />
    {projects.length > 0 && (
      <Pick
        name="project"
        label="Project"
        all="all"
        value={filter.project}
        options={optionsOf(projects, filter.project)}
      />
    )}
    <DayPick name="since" label="From" value={filter.since} />
    <DayPick name="until" label="To" value={filter.until} />
  </div>
);

const plainText = (value: unknown): string =>
  Array.isArray(value) ? value.join(", ") : String(value ?? "none");

/** The value, or what it was and is now. */
const changeText = (value: unknown): string => {
  if (typeof value !== "object" || value === null || !("from" in value)) return plainText(value);
  return `${plainText(value.from)} → ${plainText("to" in value ? value.to : null)}`;
};

/** A browser by its name, and another program by the first word of what it says. */
const programName = (agent: string): string =>
  agent.startsWith("Mozilla/") ? browserName(agent) : (agent.split(" ", 1)[0] ?? "");

/** The second row of an actor's work has the words of the first. */
const isEndOfWork = ({ outcome, action }: AuditEvent): boolean =>
  outcome === "done" && actionText({ action, outcome }).startsWith("asked to");

const EventRow = ({
  event,
  projects,
}: {
  readonly event: AuditEvent;
  readonly projects: readonly Named[];
}) => {
  const { at, actor, target, outcome, address, user_agent: agent } = event;
  const project = projects.find(({ id }) => id === event.project_id);
  const changes = Object.entries(event.changes).filter(([, value]) => value !== null);
  return (
    <Row
      states={
        <>
          {outcome === "refused" && <Tag tone="warn">refused</Tag>}
          {outcome === "begun" && <Tag>asked for</Tag>}
          {isEndOfWork(event) && <Tag>done</Tag>}
        </>
      }
    >
      <span>
        <strong>{actorName(actor)}</strong> {actionText(event)}
      </span>
      <Detail>
        <time dateTime={at}>{moment(at)}</time>
        {target !== null && " · "}
        {target !== null && <code>{target}</code>}
        {project !== undefined && ` · in ${project.name}`}
      </Detail>
      {changes.length > 0 && (
        <Detail>{changes.map(([name, value]) => `${name}: ${changeText(value)}`).join(" · ")}</Detail>
      )}
      <Detail>
        {[address ?? "no address", ...(agent === null ? [] : [programName(agent)])].join(" · ")}
      </Detail>
    </Row>
  );
};

const Events = ({
  events,
  isNarrowed,
  projects,
}: Omit<Shown, "filter" | "people"> & {
  readonly events: readonly AuditEvent[];
  readonly isNarrowed: boolean;
}) =>
  events.length === 0 ? (
    <Empty title="Nothing on record.">
      {isNarrowed ? <ShowEverything /> : "The record begins with the next change."}
    </Empty>
  ) : (
    <ul className="rows">
      {withoutBegun(events).map((event) => (
        <EventRow key={event.id} event={event} projects={projects} />
      ))}
    </ul>
  );

/** @param pid null: the whole account */
const Record = ({ pid }: { readonly pid: string | null }) => {
  const filter = readFilter(useAddressQuery(), pid);
  const list = useInfiniteQuery(recordQuery(pid, filter));
  const { data: people = [] } = useQuery(peopleQuery);
  const { data: projects = [] } = useQuery({ ...projectsQuery, enabled: pid === null });
  if (list.data === undefined) return null;
  const pages = list.data.pages.filter((page) => page !== null);
  if (pages.length === 0)
    return <Empty title="Only owners see the audit record.">Ask an owner of the account.</Empty>;
  const shownProjects = pid === null ? projects : [];
  return (
    <>
      <Filters filter={filter} people={people} projects={shownProjects} />
      <p className="quiet">{`Newest first. Times are in the time zone ${ZONE}.`}</p>
      <Events
        events={pages.flatMap(({ events }) => events)}
        isNarrowed={Object.values(filter).some((value) => value !== "")}
        projects={shownProjects}
      />
      <More list={list}>Show older entries</More>
    </>
  );
};

const load = async (pid: string | null, query: URLSearchParams): Promise<void> => {
  await Promise.all([
    // As much of the record as the reader has read.
    queries.infiniteQuery(recordQuery(pid, readFilter(query, pid))),
    queries.query(peopleQuery),
    pid === null ? queries.query(projectsQuery) : null,
  ]);
};

type Project = Answer<"GET /v1/projects/:pid">;

export const pages = {
  audit: framedPage<void>({
    load: (_params, query) => load(null, query),
    title: () => "Audit",
    Body: () => (
      <>
        <h1>Audit</h1>
        <Record pid={null} />
      </>
    ),
  }),

  projectAudit: framedPage<Project>({
    load: async ([pid = ""], query) => {
      const [project] = await Promise.all([
        request("GET /v1/projects/:pid", { params: { pid } }),
        load(pid, query),
      ]);
      return project;
    },
    title: ({ name }) => `Audit of ${name}`,
    head: (project) => <ProjectHead project={project} tab="/settings" />,
    Body: ({ data: { id } }) => (
      <>
        <h2>Audit</h2>
        <Record pid={id} />
      </>
    ),
  }),
};
