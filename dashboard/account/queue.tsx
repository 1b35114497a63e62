/** Runs of triggers and people's sessions that wait for a free session, in every project of the account, in the order in which they start. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { counted } from "../elements/format.ts";
import { fireLink, projectLink } from "../elements/parts.ts";
import { SessionRow } from "../projects/session-row.tsx";
import { FrameAct } from "../ui/act.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Empty, IdEnd, Time } from "../ui/parts.tsx";

type Me = Answer<"GET /v1/me">;
type Waiting = Answer<"GET /v1/queue">["queue"][number];
type Session = Answer<"GET /v1/sessions">["sessions"][number];

/** Ten thousand runs may wait. A reader wants to see which start next. */
const SHOWN = 200;
/** Of the sessions in use, in each status. */
const IN_USE_SHOWN = 50;

interface Queue {
  readonly queue: readonly Waiting[];
  readonly inUse: readonly Session[];
  /** Of projects, by their id. */
  readonly names: ReadonlyMap<string, string>;
}

/** The sessions that hold a place: agents at rest first, and of these the oldest. */
const byRest = (sessions: readonly Session[]): readonly Session[] => {
  const works = ({ turn, status }: Session) => Number(turn.state !== "idle" || status !== "running");
  return sessions.toSorted((a, b) => works(a) - works(b) || a.created_at.localeCompare(b.created_at));
};

const WaitingRow = ({ one, project }: { readonly one: Waiting; readonly project: string | undefined }) => {
  const { kind, trigger_slug: slug, title, person, files, position, fire_id: id, project_id: pid } = one;
  const name = slug ?? (title?.trim().split("\n", 1)[0] || "Session");
  return (
    <li className="row waiting">
      <span className="place">
        <span className="unseen">Position </span>
        {position}
      </span>
      <span className="row-main">
        <a className="cover" href={fireLink(pid, id)}>
          {name}
        </a>
        <a className="quiet" href={projectLink(pid)}>
          {project ?? (
            <>
              project <IdEnd id={pid} />
            </>
          )}
        </a>
        {person !== null && <span className="quiet">{person.name}</span>}
        {files > 0 && <span className="quiet">{`with ${counted(files, "file")}`}</span>}
      </span>
      <span className="row-side">
        <span>
          queued <Time at={one.queued_at} />
        </span>
        <span className="quiet">
          expires <Time at={one.expires_at} />
        </span>
      </span>
      <FrameAct
        name="cancel-fire"
        input={{ project: pid, fire: id, title: name, kind }}
        label={`Cancel ${name} at position ${position}`}
      >
        Cancel
      </FrameAct>
    </li>
  );
};

const InUse = ({ inUse, names }: Pick<Queue, "inUse" | "names">) => (
  <section>
    <h2>Sessions in use</h2>
    <p className="quiet">
      Each one uses a place, even while its agent rests. If you stop one, its work is saved, and the next
      session starts.
    </p>
    <ul className="rows">
      {inUse.map((session) => (
        <SessionRow key={session.id} session={session} project={names.get(session.project_id)} />
      ))}
    </ul>
  </section>
);

const usage = ({ account }: Me): string =>
  ` ${account.active_sessions} of ${counted(account.session_cap, "session")} ${account.session_cap === 1 ? "is" : "are"} in use.`;

const Page = ({ data, me }: { readonly data: Queue; readonly me: Me | null }) => {
  const { queue: waiting, inUse, names } = data;
  const others = (me?.account.queued_fires ?? 0) - waiting.length;
  return (
    <>
      <header className="head">
        <h1>Queue</h1>
        <p className="quiet">
          Runs of triggers, and sessions that people asked for, in the order in which they will start.
          {me !== null && usage(me)}
        </p>
      </header>
      {waiting.length === 0 ? (
        <Empty title="The queue is empty.">
          Runs and sessions wait here while all sessions of the account are in use.
        </Empty>
      ) : (
        <ol className="rows">
          {waiting.map((one) => (
            <WaitingRow key={one.fire_id} one={one} project={names.get(one.project_id)} />
          ))}
        </ol>
      )}
      {others > 0 && <p className="quiet">{`${others} more wait.`}</p>}
      {inUse.length > 0 && <InUse inUse={inUse} names={names} />}
    </>
  );
};

const using = (status: "running" | "provisioning") =>
  request("GET /v1/sessions", { query: { status, limit: IN_USE_SHOWN } });

export const queue = framedPage<Queue>({
  load: async () => {
    const [{ queue: waiting }, { projects }, running, starting] = await Promise.all([
      request("GET /v1/queue", { query: { limit: SHOWN } }),
      request("GET /v1/projects", { query: { limit: 200 } }),
      using("running"),
      using("provisioning"),
    ]);
    return {
      queue: waiting,
      inUse: byRest([...running.sessions, ...starting.sessions]),
      names: new Map(projects.map(({ id, name }) => [id, name])),
    };
  },
  title: () => "Queue",
  Body: Page,
});
