/** Change requests as rows: of a project, and of a session. */
import { projectLink } from "../elements/parts.ts";
import { Badge, Empty, IdEnd, Time } from "../ui/parts.tsx";
import type { Summary } from "./request.ts";

/** Session branches are named by a UUID. */
export const Branch = ({ name }: { readonly name: string }) =>
  /^[0-9a-f-]{36}$/.test(name) ? <IdEnd id={name} /> : <code>{name}</code>;

export const ChangeRows = ({ changes }: { readonly changes: readonly Summary[] }) => (
  <ul className="rows">
    {changes.map((change) => (
      <li key={change.number} className="row">
        <span className="row-main">
          <a
            className="cover"
            href={projectLink(change.project_id, `/change-requests/${change.number}`)}
          >{`#${change.number} ${change.title}`}</a>
          <span className="quiet">
            <Branch name={change.head_ref} />
            {` → ${change.base_ref}`}
          </span>
        </span>
        <Badge status={change.status} />
        <span className="row-side">
          <Time at={change.created_at} />
        </span>
      </li>
    ))}
  </ul>
);

interface ListParts {
  /** The project. */
  readonly id: string;
  readonly changes: readonly Summary[];
  /** Whether older ones are left out. */
  readonly hasMore: boolean;
}

export const ChangeList = ({ id, changes, hasMore }: ListParts) =>
  changes.length === 0 ? (
    <Empty title="No change requests yet.">
      Open one from a session that has pushed commits. <a href={projectLink(id)}>Show the sessions</a>
    </Empty>
  ) : (
    <>
      <ChangeRows changes={changes} />
      {hasMore && <p className="quiet">{`Only the newest ${changes.length} change requests are shown.`}</p>}
    </>
  );
