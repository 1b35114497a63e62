/** Home: where a person starts sessions, and sees all of them by what they need. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { projectsQuery } from "../api/projects.ts";
import { queries } from "../api/queries.ts";
import { counted } from "../elements/format.ts";
import { isArchived } from "../projects/project.ts";
import { NoProjects } from "../projects/none.tsx";
import { type ActivityGroup, ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";
import { useAddressQuery } from "../ui/address.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Empty, More } from "../ui/parts.tsx";
import { NotificationButton } from "../ui/notification-button.tsx";
import { Composer } from "./composer.tsx";
import { hasQueued, isNarrowed, readFilter, type Filter } from "./filter.ts";
import { useNarrowing } from "./narrowing.tsx";
import { useStartable } from "./rights.ts";
import { type Queued, QueuedRow, queueQuery, useQueued } from "./queued.tsx";
import { type Review, ReviewRow, reviewsQuery, useReviews } from "./reviews.tsx";
import { SessionRow } from "./row.tsx";
import { byUrgency, groupQuery, groupsIn, type Session } from "./sessions.ts";

type Me = Answer<"GET /v1/me">;
type Project = Answer<"GET /v1/projects">["projects"][number];

/** Runs of triggers that have no session yet, beside the sessions that people asked for. */
const QueuedRuns = ({ account, requests }: Pick<Me, "account"> & { readonly requests: number }) => {
  const { queued_fires: waiting, active_sessions: active, session_cap: cap } = account;
  const count = waiting - requests;
  if (count <= 0) return null;
  return (
    <p className="queued-runs">
      {`${counted(count, "run waits", "runs wait")} for a free session. `}
      {active >= cap && `All ${counted(cap, "session")} of the account are in use. `}
      <a href="#/queue">Show the queue</a>
    </p>
  );
};

interface Group {
  readonly group: ActivityGroup;
  readonly sessions: readonly Session[];
  /** Whether it has archived sessions, of all groups. */
  readonly isArchive: boolean;
  readonly list: Parameters<typeof More>[0]["list"];
  readonly projects: readonly Project[];
  /** Sessions that wait for a free one, in the order in which they start. */
  readonly queued: readonly Queued[];
  /** Change requests that wait for the reader's review. */
  readonly reviews: readonly Review[];
  /** Beside the heading. */
  readonly aside: ReactNode;
  /** Below the rows. */
  readonly children: ReactNode;
}

const nameIn = (projects: readonly Project[], { project_id: of }: { readonly project_id: string }) =>
  projects.find(({ id }) => id === of)?.name;

const GroupSection = ({
  group,
  isArchive,
  sessions,
  queued,
  reviews,
  list,
  projects,
  aside,
  children,
}: Group) => (
  <section className="group-of-sessions" aria-labelledby={`group-${group}`}>
    <header>
      <h2 id={`group-${group}`}>{isArchive ? "Archived" : ACTIVITY_WORDS[group].word}</h2>
      {aside}
    </header>
    {sessions.length + queued.length + reviews.length > 0 && (
      <ul className="sessions">
        {byUrgency(sessions).map((session) => (
          <SessionRow
            key={session.id}
            session={session}
            project={nameIn(projects, session)}
            isArchive={isArchive}
          />
        ))}
        {reviews.map((one) => (
          <ReviewRow key={one.id} review={one} project={nameIn(projects, one)} />
        ))}
        {queued.map((one) => (
          <QueuedRow key={one.fire_id} queued={one} project={nameIn(projects, one)} />
        ))}
      </ul>
    )}
    {children}
    <More list={list}>Show more</More>
  </section>
);

const useGroups = (filter: Filter) => {
  const lists = {
    needs_you: useInfiniteQuery(groupQuery("needs_you", filter)),
    working: useInfiniteQuery(groupQuery("working", filter)),
    ready_for_review: useInfiniteQuery(groupQuery("ready_for_review", filter)),
    done: useInfiniteQuery(groupQuery("done", filter)),
  };
  return groupsIn(filter).map((group) => ({
    group,
    list: lists[group],
    sessions: lists[group].data?.pages.flatMap((page) => page.sessions) ?? [],
  }));
};

interface SessionsParts {
  readonly projects: readonly Project[];
  readonly me: Me | null;
  readonly canStart: boolean;
}

const Sessions = ({ projects, me, canStart }: SessionsParts) => {
  const filter = readFilter(useAddressQuery());
  const narrowing = useNarrowing({ filter, projects, reader: me?.user.id ?? null });
  const queued = useQueued().filter((one) => hasQueued(filter, one));
  const reviews = useReviews(filter);
  const hasRuns = !isNarrowed(filter) && me !== null && me.account.queued_fires > 0;
  const groups = useGroups(filter).filter(
    ({ group, sessions }) =>
      sessions.length > 0 ||
      (group === "needs_you" && reviews.length > 0) ||
      (group === "working" && (queued.length > 0 || hasRuns)),
  );
  if (groups.length === 0 && isNarrowed(filter))
    return (
      <>
        {narrowing.fields}
        <Empty title="No session matches.">Choose other filters, or show everything.</Empty>
      </>
    );
  if (groups.length === 0)
    return (
      <Empty title="No sessions yet.">
        {canStart
          ? "Say above what an agent should do. A trigger starts sessions, too."
          : "Members of a project start sessions, and triggers do."}
      </Empty>
    );
  return (
    <>
      {narrowing.fields}
      {groups.map(({ group, sessions, list }, at) => (
        <GroupSection
          key={group}
          group={group}
          isArchive={filter.archived !== ""}
          sessions={sessions}
          list={list}
          projects={projects}
          reviews={group === "needs_you" ? reviews : []}
          queued={group === "working" ? queued : []}
          aside={
            at === 0 && (
              <span className="aside">
                {narrowing.button}
                <NotificationButton />
              </span>
            )
          }
        >
          {group === "working" && hasRuns && me !== null && (
            <QueuedRuns account={me.account} requests={queued.length} />
          )}
        </GroupSection>
      ))}
    </>
  );
};

const Home = ({ me }: { readonly me: Me | null }) => {
  const { data: projects = [] } = useQuery(projectsQuery);
  const open = projects.filter((project) => !isArchived(project));
  const startable = useStartable(me, open);
  return (
    <>
      <h1 className="unseen">Home</h1>
      {startable.length > 0 && me !== null && <Composer person={me.user.id} projects={startable} />}
      {projects.length === 0 ? (
        <NoProjects me={me} />
      ) : (
        <Sessions projects={projects} me={me} canStart={startable.length > 0} />
      )}
    </>
  );
};

export const pages = {
  home: framedPage<void>({
    load: async (_, query) => {
      const filter = readFilter(query);
      await Promise.all([
        queries.query(projectsQuery),
        queries.query(queueQuery),
        queries.query(reviewsQuery),
        ...groupsIn(filter).map((group) => queries.infiniteQuery(groupQuery(group, filter))),
      ]);
    },
    title: () => "Home",
    Body: Home,
  }),
};
