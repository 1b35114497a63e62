/** Calls of the agent that wait for a person: what is asked, and the decision. */
import { useEffect, useRef, useState } from "react";
import { post } from "../../api/api.ts";
import type { Answer } from "../../../src/cli/contract.ts";
import { request } from "../../api/client.ts";
import { perform } from "../../frame/app.ts";
import { bring } from "../../frame/later.ts";
import { notice } from "../../frame/notices.ts";
import { projectPath } from "../../projects/project.ts";
import { lackedRole } from "../../frame/roles.ts";
import { Facts, Time } from "../../ui/parts.tsx";
import { useFocusKept } from "../focus.ts";
import { Denial } from "./denial.tsx";

export type Approval = Answer<"GET /v1/projects/:pid/approvals">["approvals"][number];

interface Place {
  readonly project: string;
  readonly session: string;
}

/**
 * The calls of a session that wait. A reader who may not decide gets none.
 *
 * @param known changes when the calls may have changed
 */
export const useApprovals = ({ project, session }: Place, known: unknown): readonly Approval[] => {
  const [approvals, setApprovals] = useState<readonly Approval[]>([]);
  useEffect(() => {
    let isCurrent = true;
    const read = async (): Promise<void> => {
      if (lackedRole("approve-call") !== null) return;
      const { approvals: waiting } = await request("GET /v1/projects/:pid/approvals", {
        params: { pid: project },
        query: { session_id: session, status: "pending" },
      });
      // The module has what the buttons do.
      if (waiting.length > 0) await bring(() => import("../../connectors/approvals.ts"));
      if (isCurrent) setApprovals(waiting);
    };
    // The page around it says that the service does not respond.
    read().catch(() => {});
    return () => {
      isCurrent = false;
    };
  }, [project, session, known]);
  return approvals;
};

/** A value in a line, or as it is. */
const Value = ({ value }: { readonly value: unknown }) => {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  return (
    <pre className="text value" dir="auto">
      {text}
    </pre>
  );
};

const HIDDEN = '"[hidden, ';

export const ApprovalCard = ({
  project,
  approval,
}: {
  readonly project: string;
  readonly approval: Approval;
}) => {
  const form = useRef<HTMLFormElement>(null);
  useFocusKept(form);
  const { id, connector, tool, arguments: values, expires_at: end } = approval;
  const name = `${connector} ${tool}`;
  const data = { "data-project": project, "data-approval": id, "data-title": name };
  const deny = async (element: HTMLFormElement): Promise<void> => {
    const reason = String(new FormData(element).get("reason") ?? "").trim();
    await post(`${projectPath(project)}/approvals/${id}/deny`, reason === "" ? {} : { reason });
    notice(`${name} is denied.`);
  };
  return (
    <div className="item ask-card">
      <p className="said-by">
        <strong>The agent asks to call </strong>
        <code>{name}</code>
      </p>
      <Facts
        rows={Object.entries(values ?? {}).map(([key, value]) => [key, <Value key={key} value={value} />])}
      />
      <form
        ref={form}
        className="answer"
        aria-label={`The agent asks to call ${name}`}
        onSubmit={(event) => {
          event.preventDefault();
          const { currentTarget } = event;
          void perform(() => deny(currentTarget));
        }}
      >
        <p className="actions">
          <button
            {...data}
            type="button"
            className="primary"
            data-action="approve-call"
            aria-label={`Approve: ${name}`}
          >
            Approve
          </button>
          {JSON.stringify(values).includes(HIDDEN) && (
            <button
              {...data}
              type="button"
              className="plain"
              data-action="show-hidden"
              aria-label={`Show hidden values: ${name}`}
            >
              Show hidden values
            </button>
          )}
        </p>
        <Denial name="reason" label={`Deny: ${name}`} />
      </form>
      <p className="quiet">
        Without a decision, the call expires <Time at={end} />.
      </p>
    </div>
  );
};
