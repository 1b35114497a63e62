/** The platform's own tools with which agents read and open change requests (http/raw/own-tools.ts). */
import { CURSOR, get, json, toolPage, string, text, type OwnTool } from "../../http/raw/own-tools.ts";
import { cut, LISTED, link, NAME_LENGTH, TEXT_LENGTH, type Pages } from "../../http/raw/own-shapes.ts";
import type { ChangeRequestSummary, Detail } from "./api.ts";

type Change = typeof ChangeRequestSummary.Encoded;

const changeShape = (change: Change, pages: Pages) => ({
  number: change.number,
  status: change.status,
  session_id: change.session_id,
  head_ref: change.head_ref,
  base_ref: change.base_ref,
  created_at: change.created_at,
  merged_commit: change.merged_commit,
  link: link(pages, `/change-requests/${change.number}`),
  quoted: { title: cut(change.title, NAME_LENGTH) },
});

const changesShape = (
  page: { readonly change_requests: readonly Change[]; readonly next_cursor: string | null },
  pages: Pages,
) => ({
  change_requests: page.change_requests.map((change) => changeShape(change, pages)),
  next_cursor: page.next_cursor,
});

const oneChangeShape = (change: typeof Detail.Encoded, pages: Pages) => ({
  ...changeShape(change, pages),
  mergeable: change.mergeable,
  head_commit: change.head_commit,
  commits_total: change.commits_total,
  files_changed_total: change.files_changed_total,
  quoted: {
    title: cut(change.title, NAME_LENGTH),
    description: cut(change.description, TEXT_LENGTH),
    conflicts: change.conflicts.slice(0, LISTED),
    commits: change.commits.slice(0, LISTED).map(({ sha, subject }) => `${sha} ${cut(subject, NAME_LENGTH)}`),
    files: change.files_changed.slice(0, LISTED).map(({ path }) => path),
  },
});

export const CHANGE_REQUEST_TOOLS: readonly OwnTool[] = [
  {
    name: "list_change_requests",
    description: "Lists change requests of this project, newest first.",
    fields: { status: string("open, merged or closed."), cursor: CURSOR },
    required: [],
    request: (args) => get(["change-requests"], { ...toolPage(args), status: text(args, "status") }),
    shape: json(changesShape),
  },
  {
    name: "get_change_request",
    description: "Gives a change request: its state, files and commits, and whether it can be merged.",
    fields: { number: { type: "integer", description: "The number of the change request." } },
    required: ["number"],
    request: (args) => get(["change-requests", text(args, "number") ?? ""]),
    shape: json(oneChangeShape),
  },
  {
    name: "open_change_request",
    description: "Proposes this session's branch to the default branch. Push it first. A person merges it.",
    fields: { title: string("One line."), description: string("What changes, and why.") },
    required: ["title"],
    request: (args, own) => ({
      method: "POST",
      path: ["change-requests"],
      body: {
        session_id: own,
        title: args["title"],
        ...(args["description"] !== undefined && { description: args["description"] }),
      },
    }),
    shape: json(changeShape),
  },
];
