/** The running sessions that a new limit of spend does not count. They go on, and a person may stop them on their pages. */
import type { Answer } from "../../src/cli/contract.ts";
import { projectLink } from "../elements/parts.ts";
import { Callout, Detail } from "../ui/parts.tsx";

export type UncountedSession = Answer<"PUT /v1/spend-limits">["uncounted_sessions"][number];

export const Uncounted = ({ sessions }: { readonly sessions: readonly UncountedSession[] }) =>
  sessions.length === 0 ? null : (
    <Callout tone="warn">
      <p>
        {sessions.length === 1
          ? "The limit does not count a running session, which goes on. Stop it on its page if it must not:"
          : `The limit does not count ${sessions.length} running sessions, which go on. Stop them on their pages if they must not:`}
      </p>
      <ul>
        {sessions.map(({ id, project_id: pid, name, reason }) => (
          <li key={id}>
            <a href={projectLink(pid, `/sessions/${id}`)}>{name ?? `Session …${id.slice(-8)}`}</a>{" "}
            <Detail>{reason}</Detail>
          </li>
        ))}
      </ul>
    </Callout>
  );
