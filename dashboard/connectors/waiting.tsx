/** The calls of a project's agents that wait for a person. A session's own are conversation/items/approval.tsx. */
import { projectLink } from "../elements/parts.ts";
import { Act, RoleAct } from "../ui/act.tsx";
import { Callout, CopyBlock, Time } from "../ui/parts.tsx";
import { type Approval, approve, deny, showHidden } from "./approvals.ts";

const HIDDEN = '"[hidden, ';

const Card = ({ pid, approval }: { readonly pid: string; readonly approval: Approval }) => {
  const { id, connector, tool, session_id: session, arguments: given, expires_at: end } = approval;
  const name = `${connector} ${tool}`;
  const call = { pid, id, name };
  return (
    <Callout tone="warn">
      <p>
        <strong>The agent asks to call </strong>
        <code>{name}</code>
      </p>
      <CopyBlock text={JSON.stringify(given, null, 2)} what={`the arguments of ${name}`} />
      <p className="quiet">
        Without a decision, the call expires <Time at={end} />.{" "}
        <a href={projectLink(pid, `/sessions/${session}`)}>Show the session</a>
      </p>
      <p className="actions">
        <RoleAct
          entry="approve-call"
          label="Approve"
          about={name}
          className="primary"
          does={() => approve(call)}
        />
        <RoleAct entry="deny-call" label="Deny" about={name} does={() => deny(call)} />
        {JSON.stringify(given).includes(HIDDEN) && (
          <Act label="Show hidden values" about={name} does={() => showHidden(call)} />
        )}
      </p>
    </Callout>
  );
};

export const WaitingCalls = ({
  pid,
  approvals,
}: {
  readonly pid: string;
  readonly approvals: readonly Approval[];
}) =>
  approvals.length > 0 && (
    <div className="calls-asked">
      {approvals.map((approval) => (
        <Card key={approval.id} pid={pid} approval={approval} />
      ))}
    </div>
  );
