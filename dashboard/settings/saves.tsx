/** How much saved work a project's sessions have, the largest first. */
import type { Answer } from "../../src/cli/contract.ts";
import { counted, size } from "../elements/format.ts";
import { projectLink } from "../elements/parts.ts";
import { Badge, IdEnd } from "../ui/parts.tsx";

/** How many sessions are listed. The API has them all. */
const SHOWN = 10;

type Saves = Answer<"GET /v1/projects/:pid/saves">;

const SavesRow = ({
  pid,
  session,
}: {
  readonly pid: string;
  readonly session: Saves["sessions"][number];
}) => (
  <li className="row">
    <span className="row-main">
      <a className="cover" href={projectLink(pid, `/sessions/${session.id}`)}>
        {session.name ?? (
          <>
            Session <IdEnd id={session.id} />
          </>
        )}
      </a>
    </span>
    <Badge status={session.status} />
    <span className="row-side">{size(session.bytes)}</span>
  </li>
);

export const SavesPart = ({ pid, saves }: { readonly pid: string; readonly saves: Saves | null }) => {
  if (saves === null) return <p>The node that has the saved work cannot be reached now.</p>;
  const { sessions, bytes, away } = saves;
  return (
    <>
      {away.map((node) => (
        <p key={node}>{`Not counted: node ${node} cannot be reached now.`}</p>
      ))}
      <p>
        {sessions.length === 0
          ? `No session has saved work${away.length > 0 ? " on the nodes that can be reached" : ""}.`
          : `What is saved of ${counted(sessions.length, "session")} beside their pushes takes ${size(bytes)}. Deleting a session deletes its saved work.`}
      </p>
      {sessions.length > 0 && (
        <ul className="rows">
          {sessions.slice(0, SHOWN).map((session) => (
            <SavesRow key={session.id} pid={pid} session={session} />
          ))}
        </ul>
      )}
      {sessions.length > SHOWN && (
        <p className="quiet">
          {`The ${SHOWN} largest. `}
          <code>platform sessions saves</code> lists all.
        </p>
      )}
    </>
  );
};
