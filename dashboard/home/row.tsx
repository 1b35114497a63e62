/** A session in the list: what it does, where its work stands, and what a person can answer in place. */
import { useId, useState } from "react";
import { counted, dollars, grouped } from "../elements/format.ts";
import { projectLink, sessionLink } from "../elements/parts.ts";
import { hasEnded, sessionName } from "../projects/project.ts";
import { isUnsafe, unsavedWords } from "../saved/words.ts";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";
import { ActivityIcon } from "../ui/activity.tsx";
import { Prose, Time } from "../ui/parts.tsx";
import { ActionButton, SessionMenu } from "./actions.tsx";
import type { Session } from "./sessions.ts";
import { Wait } from "./wait.tsx";

type Kind = NonNullable<Session["waits_for"]>["kind"];

/** What the agent wishes, and the button that opens it. */
const WAITS: Readonly<Record<Kind, readonly [lead: string, open: string]>> = {
  question: ["Asks: ", "Answer"],
  permission: ["Asks for permission: ", "Answer"],
  plan: ["Proposes a plan: ", "Decide"],
  approval: ["Asks for approval: ", "Decide"],
  work_unsaved: ["", "Decide"],
};

/** Why it failed, or what of its work is missing. */
const problemText = (session: Session): string | null => {
  const { failure, last_turn: last, activity, saved } = session;
  if (failure !== null) return failure.message;
  if (activity === "failed") return `Last turn failed: ${last?.error?.message ?? ""}`;
  return saved !== null && isUnsafe(session) ? unsavedWords(saved) : null;
};

/** The session in one line: what a search found in it, what it waits for, what is wrong, or what the agent said last. */
const lineOf = (session: Session): readonly [text: string, look: string] => {
  const { waits_for: wait, last_sentence: sentence, found } = session;
  if (found !== undefined) return [found.text, "line"];
  if (wait !== null) return [WAITS[wait.kind][0] + wait.text, "line asks-line"];
  const problem = problemText(session);
  return problem === null ? [sentence ?? "", "line"] : [problem, "line problem-line"];
};

/** A text that may be cut off. The whole of it is its title. */
const Line = ({ session }: { readonly session: Session }) => {
  const [text, look] = lineOf(session);
  return (
    text !== "" && (
      <span className={look} title={text}>
        <Prose text={text} />
      </span>
    )
  );
};

/** Who or what started it. */
const starter = ({ name, person, trigger_slug: trigger, parent_session_id: parent }: Session) => {
  if (parent !== null) return "an agent";
  // Without a name, the trigger's is the session's.
  return trigger === null ? (person?.name ?? null) : name === null ? null : trigger;
};

/** The state's word, unless the group's heading says it. */
const stateWord = ({ session: { activity, archived }, isArchive }: RowParts): string | null => {
  const { word, group } = ACTIVITY_WORDS[activity];
  if (archived && !isArchive) return "Archived";
  return word === ACTIVITY_WORDS[group].word ? null : word;
};

const aboutText = ({ session, project, isArchive }: RowParts): string =>
  [stateWord({ session, project, isArchive }), project ?? "Another project", starter(session)]
    .filter((part) => part !== null)
    .join(" · ");

const About = (parts: RowParts) => (
  <span className="quiet about" title={aboutText(parts)}>
    {aboutText(parts)}
  </span>
);

/** What people say of an open change request. Its opener has to hear it. */
const saidOf = ({ changes_asked_by: asking, comments }: NonNullable<Session["change_request"]>): string =>
  [asking !== null && `changes asked for by ${asking}`, comments > 0 && counted(comments, "comment")]
    .filter(Boolean)
    .join(", ");

/** When the agent worked last. That a session falls asleep is no news. */
const lastActive = ({ failure, last_turn: last, turn }: Session): string =>
  failure?.at ?? (turn.state === "idle" ? last?.at : undefined) ?? turn.since;

const Facts = ({ session }: { readonly session: Session }) => {
  const { changes, change_request: change, usage, project_id: project } = session;
  return (
    <span className="facts-of-work">
      {changes !== null && changes.files > 0 && (
        <span className="counts">
          <span className="added">{`+${grouped(changes.additions)}`}</span>{" "}
          <span className="removed">{`−${grouped(changes.deletions)}`}</span>
        </span>
      )}
      {change !== null && (
        <a href={projectLink(project, `/change-requests/${change.number}`)} title={change.title}>
          {`#${change.number} ${change.status}`}
        </a>
      )}
      {change !== null && saidOf(change) !== "" && <span className="said">{saidOf(change)}</span>}
      {usage.cost_usd > 0 && <span className="quiet">{dollars(usage.cost_usd)}</span>}
      <Time at={lastActive(session)} />
    </span>
  );
};

interface RowParts {
  readonly session: Session;
  /** Its name. */
  readonly project: string | undefined;
  /** Whether all rows of the list are archived. */
  readonly isArchive: boolean;
}

/** The button that opens a row, by what stands in it. Null: all is said. */
const opener = ({ waits_for: wait, activity }: Session): string | null => {
  if (wait !== null) return WAITS[wait.kind][1];
  return activity === "failed" ? "Show" : null;
};

const Failure = ({ session }: { readonly session: Session }) => (
  <>
    <p className="text">
      <Prose text={problemText(session) ?? ""} />
    </p>
    <p className="actions">
      {hasEnded(session.status) && (
        <ActionButton session={session} entry="restart-session" label="Restart" className="primary" />
      )}
      <a className="button" href={sessionLink(session)}>
        Open the session
      </a>
    </p>
  </>
);

export const SessionRow = ({ session, project, isArchive }: RowParts) => {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const name = sessionName(session);
  const label = opener(session);
  return (
    <li className="session">
      <div className="row">
        <ActivityIcon activity={session.activity} />
        <span className="row-main">
          <a className="cover" href={sessionLink(session)} title={name}>
            {session.unread && (
              <span className="unread">
                <span className="unseen">New: </span>
              </span>
            )}
            {name}
          </a>
          <Line session={session} />
        </span>
        <span className="meta">
          <About session={session} project={project} isArchive={isArchive} />
          <Facts session={session} />
          {label !== null && (
            <button
              type="button"
              className="opener"
              aria-expanded={isOpen}
              aria-controls={id}
              aria-label={`${label}: ${name}`}
              onClick={() => setOpen(!isOpen)}
            >
              {label}
            </button>
          )}
        </span>
        <SessionMenu session={session} />
      </div>
      <div id={id} className="opened" hidden={!isOpen || label === null}>
        {isOpen && (session.waits_for === null ? <Failure session={session} /> : <Wait session={session} />)}
      </div>
    </li>
  );
};
