/** What the page of a change request reads, and what it writes. */
import type { Answer } from "../../src/cli/contract.ts";
import { orNull, request } from "../api/client.ts";
import { getText } from "../api/api.ts";
import { type Source, sourceOf } from "../diff/files.ts";
import { projectPath } from "../projects/project.ts";

export type Project = Answer<"GET /v1/projects/:pid">;
export type Change = Answer<"GET /v1/projects/:pid/change-requests/:number">;
export type Summary = Answer<"GET /v1/projects/:pid/change-requests">["change_requests"][number];
export type Remark = Answer<"GET /v1/projects/:pid/change-requests/:number/remarks">["remarks"][number];
type Session = Answer<"GET /v1/projects/:pid/sessions/:sid">;
export type Member = Answer<"GET /v1/projects/:pid/members">["members"][number];

export interface ChangeData {
  readonly project: Project;
  readonly change: Change;
  readonly diff: string;
  /** Null: it was deleted, or a person pushed the branch. */
  readonly session: Session | null;
  /** Empty if they could not be read: without the names, the page is still of use. */
  readonly members: readonly Member[];
  /** The oldest first. */
  readonly remarks: readonly Remark[];
}

/** A request has at most 1,000 remarks. */
const readRemarks = async (params: { readonly pid: string; readonly number: number }) => {
  const all: Remark[] = [];
  let cursor: string | null = null;
  do {
    // oxlint-disable-next-line no-await-in-loop -- each page has the cursor of the next
    const page: Answer<"GET /v1/projects/:pid/change-requests/:number/remarks"> = await request(
      "GET /v1/projects/:pid/change-requests/:number/remarks",
      { params, query: { limit: 200, ...(cursor !== null && { cursor }) } },
    );
    all.push(...page.remarks);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return all;
};

const diffUrl = (pid: string, number: number): string => `${projectPath(pid)}/change-requests/${number}/diff`;

/** @param ids of the project, and the request's number @throws ApiError */
export const readChange = async ([pid = "", digits = ""]: readonly string[]): Promise<ChangeData> => {
  const number = Number(digits);
  const params = { pid, number };
  const [project, change, diff, members, remarks] = await Promise.all([
    request("GET /v1/projects/:pid", { params: { pid } }),
    request("GET /v1/projects/:pid/change-requests/:number", { params }),
    getText(diffUrl(pid, number)),
    request("GET /v1/projects/:pid/members", { params: { pid } })
      .then((answer) => answer.members)
      .catch(() => []),
    readRemarks(params),
  ]);
  const { session_id: sid } = change;
  const session =
    sid === null
      ? null
      : await orNull(request("GET /v1/projects/:pid/sessions/:sid", { params: { pid, sid } }));
  return { project, change, diff, session, members, remarks };
};

/** Where single files of the diff can be read. */
export const sourceFor = ({ project, change }: Pick<ChangeData, "project" | "change">): Source =>
  sourceOf(diffUrl(project.id, change.number), change);

/** What all routes of the request name. */
export const paramsOf = ({ project_id: pid, number }: Change) => ({ pid, number });

/** @throws ApiError */
export const addRemark = async (
  change: Change,
  payload: {
    readonly kind?: Remark["kind"];
    readonly body: string;
    readonly commit?: string;
    readonly place?: NonNullable<Remark["place"]>;
    readonly reply_to?: string;
  },
): Promise<void> => {
  await request("POST /v1/projects/:pid/change-requests/:number/remarks", {
    params: paramsOf(change),
    payload,
  });
};

/** @throws ApiError */
export const editRemark = async (
  change: Change,
  id: string,
  payload: { readonly body?: string; readonly resolved?: boolean },
): Promise<void> => {
  await request("PATCH /v1/projects/:pid/change-requests/:number/remarks/:id", {
    params: { ...paramsOf(change), id },
    payload,
  });
};

/** @throws ApiError */
export const removeRemark = async (change: Change, id: string): Promise<void> => {
  await request("DELETE /v1/projects/:pid/change-requests/:number/remarks/:id", {
    params: { ...paramsOf(change), id },
  });
};
