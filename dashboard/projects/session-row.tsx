/** A session in a list of a project or of the account. */
import { projectLink, sessionWord } from "../elements/parts.ts";
import { duration, now } from "../elements/format.ts";
import { SessionMenu } from "../home/actions.tsx";
import { isUnsafe, unsavedWords } from "../saved/words.ts";
import { Badge, Detail, IdEnd, Prose, Time } from "../ui/parts.tsx";
import { isLive, sessionName } from "./project.ts";
import type { Session } from "./session-query.ts";

const WAITS: Readonly<Record<NonNullable<Session["waits_for"]>["kind"], string>> = {
  question: "An answer",
  permission: "A permission",
  approval: "An approval",
  plan: "The approval of its plan",
  work_unsaved: "Work not saved",
};

/** Why it failed, or what of its work is missing. */
const problemText = (session: Session): string | null => {
  const { failure, status, turn, last_turn: last, saved } = session;
  if (failure !== null) return failure.message;
  const isWorking = isLive(status) && turn.state !== "idle";
  if (last?.state === "failed" && !isWorking) return `Last turn failed: ${last.error?.message ?? ""}`;
  return saved !== null && isUnsafe(session) ? unsavedWords(saved) : null;
};

/** How long it ran, or has been running. */
const Length = ({ session }: { readonly session: Session }) => {
  const { running_at: began, stopped_at: stopped, failure, status } = session;
  if (began === null) return null;
  const stillRuns = isLive(status);
  const end = stillRuns ? now() : Date.parse(stopped ?? failure?.at ?? began);
  const lasted = duration(end - Date.parse(began));
  return <Detail>{stillRuns ? `for ${lasted}` : `ran ${lasted}`}</Detail>;
};

const About = ({ session, project }: SessionRow) => (
  <Detail>
    {project ?? (
      <>
        <IdEnd id={session.id} />
        {session.agent_name === "default" ? "" : ` · ${session.agent_name}`}
      </>
    )}
    {session.name !== null && session.trigger_slug !== null && ` · ${session.trigger_slug}`}
    {session.parent_session_id !== null && " · by an agent"}
  </Detail>
);

interface SessionRow {
  readonly session: Session;
  /** Its project's name, on a page of several projects. */
  readonly project?: string | undefined;
}

export const SessionRow = ({ session, project }: SessionRow) => {
  const problem = problemText(session);
  return (
    <li className="row has-menu">
      <span className="row-main">
        <a className="cover" href={projectLink(session.project_id, `/sessions/${session.id}`)}>
          {sessionName(session)}
        </a>
        <About session={session} project={project} />
        {session.found !== undefined && <Detail>{session.found.text}</Detail>}
        {problem !== null && (
          <span className="reason">
            <Prose text={problem} />
          </span>
        )}
      </span>
      <span className="states">
        {session.waits_for !== null && (
          <span className="turn-word" data-turn="requires_action">
            {WAITS[session.waits_for.kind]}
          </span>
        )}
        <Badge status={session.activity} word={sessionWord(session)} />
      </span>
      <span className="row-side">
        <Time at={session.created_at} />
        <Length session={session} />
      </span>
      <SessionMenu session={session} />
    </li>
  );
};
