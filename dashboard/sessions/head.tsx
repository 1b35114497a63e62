/** The head of a session's page: what it is, what it does, and what a person can do with it. */
import { Fragment, type ReactNode } from "react";
import { grouped } from "../elements/format.ts";
import { projectLink } from "../elements/parts.ts";
import { hasEnded, isLive, sessionName } from "../projects/project.ts";
import { lackedRole } from "../frame/roles.ts";
import { ActionsMenu } from "../ui/actions-menu.tsx";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";
import { ActivityIcon, isAtRest } from "../ui/activity.tsx";
import { IdEnd, Prose, Time } from "../ui/parts.tsx";
import { begunFrom } from "../../src/domain/session/begun.ts";
import { BegunFrom } from "./begun-from.tsx";
import type { Place } from "./place.ts";
import { SessionAct } from "./acts.tsx";
import type { ChangeRequest, Session, SessionData } from "./session.ts";
import { hasNewWork, type Work } from "./work.ts";

interface Head {
  readonly data: SessionData;
  readonly work: Work;
  readonly place: Place;
  /** Whether the agent has said something in this turn. */
  readonly hasSpoken: boolean;
}

/** Who or what began it. Null: nobody knows any more. */
const starterOf = (session: Session): ReactNode => {
  const { project_id: project, person, trigger_slug: trigger, parent_session_id: parent } = session;
  if (parent !== null)
    return (
      <a href={projectLink(project, `/sessions/${parent}`)}>
        an agent, <IdEnd id={parent} />
      </a>
    );
  if (trigger !== null) return <a href={projectLink(project, "/triggers")}>{trigger}</a>;
  return person?.name ?? null;
};

/** What the session's branch has, as far as it is known. */
const workCounts = ({ session: { changes }, work }: Pick<Head, "work"> & { readonly session: Session }) => {
  const files = (work.live ?? work.changes)?.files_changed;
  if (files === undefined) return changes;
  const sum = (of: "additions" | "deletions"): number => files.reduce((all, file) => all + file[of], 0);
  return { files: files.length, additions: sum("additions"), deletions: sum("deletions") };
};

const Facts = ({ data: { session, changes }, work, place, hasSpoken }: Head) => {
  const { project_id: project, id, branch_name: branch } = session;
  const counts = workCounts({ session, work });
  const merged = changes.find(({ status }) => status === "merged");
  // What is merged stays named, also after a later one.
  const named = changes.filter((change, at) => change === merged || (at === 0 && change.status !== "closed"));
  const shown = named.length > 0 ? named : changes.slice(0, 1);
  const facts: readonly ReactNode[] = [
    starterOf(session),
    begunFrom(session) !== null && (
      <Fragment key="from">
        begun from <BegunFrom session={session} />
      </Fragment>
    ),
    <Time key="began" at={session.created_at} />,
    <Fragment key="branch">
      branch <IdEnd id={branch} />
    </Fragment>,
    counts !== null && counts.files > 0 && (
      <button key="work" type="button" className="plain" onClick={() => place.choose("changes")}>
        <span className="counts">
          <span className="added">{`+${grouped(counts.additions)}`}</span>{" "}
          <span className="removed">{`−${grouped(counts.deletions)}`}</span>
        </span>
      </button>
    ),
    ...shown.map(({ number, status, merged_commit: commit }) => (
      <a key={number} href={projectLink(project, `/change-requests/${String(number)}`)}>
        {`#${String(number)} ${status}${commit === null ? "" : ` as ${commit.slice(0, 7)}`}`}
      </a>
    )),
    <a key="why" href={projectLink(project, `/sessions/${id}/state`)}>
      Why this state?
    </a>,
  ];
  return (
    <p className="facts-of-session quiet">
      {facts.map((fact, at) => fact !== false && fact !== null && <span key={at}>{fact}</span>)}
      {/* In a turn that has said nothing yet, it is of the turn before. */}
      {(session.activity !== "working" || hasSpoken) && session.last_sentence !== null && (
        <span className="last-sentence" title={session.last_sentence}>
          <Prose text={session.last_sentence} />
        </span>
      )}
    </p>
  );
};

interface Action {
  readonly name: string;
  readonly label: string;
}

const RESTART: Action = { name: "restart-session", label: "Restart" };
const PROPOSE: Action = { name: "open-change-request", label: "Open a change request" };
const STOP: Action = { name: "stop-session", label: "Stop session" };
const RENAME: Action = { name: "rename-session", label: "Rename" };
const ARCHIVE: Action = { name: "archive-session", label: "Archive" };
const BRING_BACK: Action = { name: "unarchive-session", label: "Bring back" };
const DELETE: Action = { name: "delete-session", label: "Delete" };

/** What can be done now, what one does most likely first. */
const actionsFor = ({ session, changes }: SessionData, work: Work): readonly Action[] => {
  const isProposed = changes.some(({ status }) => status === "open");
  const propose = hasNewWork(work, session) && !isProposed ? [PROPOSE] : [];
  // What is said of a failure has its own.
  const restart = hasEnded(session.status) && session.status !== "failed" ? [RESTART] : [];
  const putAway = session.archived ? [BRING_BACK] : isAtRest(session) ? [ARCHIVE] : [];
  return [
    ...propose,
    ...restart,
    ...(isLive(session.status) ? [STOP] : []),
    ...putAway,
    RENAME,
    DELETE,
  ].filter(({ name }) => lackedRole(name) === null);
};

/** A description begins with what the agent said last. */
const inputFor = ({ last_sentence: said }: Session): Readonly<Record<string, string>> =>
  said === null ? {} : { said };

/** What one does most likely: an action, or to look at the open change request. On a phone, a message restarts. */
const nextStep = ({ data, work, place: { isNarrow } }: Head): Action | ChangeRequest | undefined =>
  data.changes.find(({ status }) => status === "open") ??
  actionsFor(data, work).find((action) => action === PROPOSE || (action === RESTART && !isNarrow));

const NextStep = (head: Head) => {
  const { session } = head.data;
  const next = nextStep(head);
  if (next === undefined) return null;
  return "number" in next ? (
    <a
      className="button primary"
      href={projectLink(session.project_id, `/change-requests/${String(next.number)}`)}
    >
      {`Change request #${String(next.number)}`}
    </a>
  ) : (
    <SessionAct
      key={next.name}
      session={session}
      entry={next.name}
      label={next.label}
      input={inputFor(session)}
      className="primary"
    />
  );
};

/** All but the next step. */
const Menu = (head: Head) => {
  const { session } = head.data;
  const title = sessionName(session);
  const next = nextStep(head);
  const others = actionsFor(head.data, head.work).filter((action) => action !== next);
  return (
    others.length > 0 && (
      <ActionsMenu about={title}>
        {others.map(({ name, label }) => (
          <SessionAct
            key={name}
            session={session}
            entry={name}
            label={label}
            input={inputFor(session)}
            className={name === DELETE.name ? "danger" : undefined}
          />
        ))}
      </ActionsMenu>
    )
  );
};

/** In a wide window it is two lines. In a narrow one it is one, and the next step has another. The details have the rest. */
export const SessionHead = (head: Head) => {
  const { project, session } = head.data;
  const { isNarrow, tab, open, close } = head.place;
  const name = sessionName(session);
  const { word } = ACTIVITY_WORDS[session.activity];
  return (
    <header className="session-head">
      <div className="head-line">
        <nav className="trail" aria-label="Breadcrumb">
          <a href={projectLink(project.id)} title={project.name} aria-label={project.name}>
            {isNarrow ? "‹" : project.name}
          </a>
        </nav>
        <ActivityIcon activity={session.activity} />
        <h1 title={name}>{name}</h1>
        <span className={isNarrow ? "unseen" : "state-word"} data-activity={session.activity}>
          {word}
        </span>
        <div className="actions">
          {!isNarrow && <NextStep {...head} />}
          <Menu {...head} />
          {!isNarrow && (
            <button
              type="button"
              aria-expanded={tab !== null}
              aria-controls="session-panel"
              onClick={tab === null ? open : close}
            >
              {tab === null ? "Show panel" : "Hide panel"}
            </button>
          )}
        </div>
      </div>
      {isNarrow ? (
        <div className="next-step">
          <NextStep {...head} />
        </div>
      ) : (
        <Facts {...head} />
      )}
    </header>
  );
};
