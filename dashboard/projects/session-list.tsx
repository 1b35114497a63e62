/** A project's page of sessions, with filters and a menu for each session. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";
import type { Project } from "../api/projects.ts";
import { queries } from "../api/queries.ts";
import { namesQuery, readListed } from "../automations/list.ts";
import { fireLink, projectLink } from "../elements/parts.ts";
import { lackedRole } from "../frame/roles.ts";
import { removeFilters, useAddressQuery } from "../ui/address.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { ListFilters } from "../ui/list-filters.tsx";
import { Badge, Callout, Detail, Empty, More, Pick, Prose, SearchPick, Time } from "../ui/parts.tsx";
import { ProjectHead } from "./head.tsx";
import { isArchived } from "./project.ts";
import {
  type Filter,
  isNarrowed,
  isQueue,
  listQuery,
  readFilter,
  type Run,
  STATUS_OPTIONS,
  starterOptions,
} from "./session-query.ts";
import { SessionRow } from "./session-row.tsx";

const NewSession = ({ project }: { readonly project: Project }) =>
  !isArchived(project) &&
  lackedRole("start-session") === null && (
    <a className="button primary" href={projectLink(project.id, "/new")}>
      New session
    </a>
  );

interface Narrowed {
  readonly project: Project;
  readonly filter: Filter;
}

const Filters = ({ project, filter }: Narrowed) => {
  const { data: names } = useQuery(namesQuery(project.id));
  return (
    <ListFilters isNarrowed={isNarrowed(filter)} aside={<NewSession project={project} />}>
      <Pick name="status" label="State" all="All" value={filter.status} options={STATUS_OPTIONS} />
      <Pick
        name="by"
        label="Started by"
        all="Everyone"
        value={filter.by}
        options={starterOptions([...(names?.keys() ?? [])], filter.by)}
      />
      <SearchPick name="search" label="Name or words" value={filter.search} />
    </ListFilters>
  );
};

const NoSessions = ({ project, filter }: Narrowed) =>
  isNarrowed(filter) ? (
    <Empty title={isQueue(filter) ? "No runs are queued." : "No sessions match the filter."}>
      <button type="button" className="plain" onClick={removeFilters}>
        Show all sessions
      </button>
    </Empty>
  ) : (
    <Empty title="No sessions yet.">
      {!isArchived(project) && "You or a trigger starts a session. "}
      <a href={projectLink(project.id, "/setup")}>Set up the project</a>
      <span className="empty-action">
        <NewSession project={project} />
      </span>
    </Empty>
  );

const RunRow = ({ pid, run }: { readonly pid: string; readonly run: Run }) => (
  <li className="row">
    <span className="row-main">
      <a className="cover" href={fireLink(pid, run.id)}>
        {run.trigger_slug ?? "Session"}
      </a>
      <Detail>Waits for a free session of the account.</Detail>
    </span>
    <Badge status="queued" word={ACTIVITY_WORDS.queued.word} />
    <span className="row-side">
      <Time at={run.received_at} />
    </span>
  </li>
);

const Sessions = ({ data: project }: { readonly data: Project }) => {
  const filter = readFilter(useAddressQuery());
  const list = useInfiniteQuery(listQuery(project.id, filter));
  if (list.data === undefined) return null;
  const sessions = list.data.pages.flatMap((page) => page.sessions);
  const queued = list.data.pages.flatMap((page) => page.queued);
  return (
    <>
      {project.manifest.error !== null && (
        <Callout tone="bad">
          <strong>The manifest could not be read. </strong>
          <Prose text={project.manifest.error} />
        </Callout>
      )}
      {(sessions.length > 0 || isNarrowed(filter)) && <Filters project={project} filter={filter} />}
      {sessions.length + queued.length === 0 ? (
        <NoSessions project={project} filter={filter} />
      ) : (
        <ul className="rows">
          {sessions.map((session) => (
            <SessionRow key={session.id} session={session} />
          ))}
          {queued.map((run) => (
            <RunRow key={run.id} pid={project.id} run={run} />
          ))}
        </ul>
      )}
      <More list={list}>Show older sessions</More>
    </>
  );
};

export const sessions = framedPage<Project>({
  load: ([pid = ""], query) => readListed(pid, queries.infiniteQuery(listQuery(pid, readFilter(query)))),
  title: ({ name }) => name,
  head: (project) => <ProjectHead project={project} tab="" />,
  Body: Sessions,
});
