/** What a person decides about a call of an agent that waits. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import type { Action } from "../frame/actions.ts";
import { askFor, tell } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";

export type Approval = Answer<"GET /v1/projects/:pid/approvals">["approvals"][number];

/** A call that waits. */
export interface Call {
  readonly pid: string;
  readonly id: string;
  /** The connector and the tool. */
  readonly name: string;
}

export const approve = async ({ pid, id, name }: Call): Promise<void> => {
  await request("POST /v1/projects/:pid/approvals/:id/approve", { params: { pid, id } });
  notice(`${name} is approved. The agent gets the result.`);
};

export const showHidden = async ({ pid, id, name }: Call): Promise<void> => {
  const { approvals } = await request("GET /v1/projects/:pid/approvals", {
    params: { pid },
    query: { status: "pending", hidden: "show", limit: 200 },
  });
  const found = approvals.find((one) => one.id === id);
  if (found === undefined) return notice(`${name} does not wait any more.`);
  return tell({
    title: `The arguments of ${name}`,
    text: "The server gets these values. Secrets of the project stay masked.",
    secret: JSON.stringify(found.arguments, null, 2),
  });
};

/** Asks for a reason. */
export const deny = async ({ pid, id, name }: Call): Promise<void> => {
  const typed = await askFor(
    {
      title: `Deny ${name}?`,
      text: "The tool is not called. The agent hears that you denied the call.",
      confirm: "Deny",
    },
    {
      reason: {
        label: "Reason",
        hint: "Optional. The agent reads it.",
        value: "",
        lines: 2,
        required: false,
      },
    },
  );
  if (typed === null) return;
  const { reason = "" } = typed;
  await request("POST /v1/projects/:pid/approvals/:id/deny", {
    params: { pid, id },
    payload: reason === "" ? {} : { reason },
  });
  notice(`${name} is denied.`);
};

const callOf = ({ project: pid = "", approval: id = "", title: name = "" }: DOMStringMap): Call => ({
  pid,
  id,
  name,
});

/** For the buttons of a conversation. */
export const actions: Readonly<Record<string, Action>> = {
  "approve-call": (input) => approve(callOf(input)),
  "show-hidden": (input) => showHidden(callOf(input)),
};
