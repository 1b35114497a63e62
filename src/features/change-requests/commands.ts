/** `platform cr`: proposes, shows and merges work. */
import type { Answer } from "../../cli/contract.ts";
import { command } from "../../cli/command.ts";
import { usage } from "../../cli/failure.ts";
import { fields, table, time, timeOrDash, visible, visibleLines } from "../../cli/terminal.ts";
import { count, oneOf, sessionId } from "../../cli/words.ts";
import { page, pageOptions, pageOutcome } from "../../cli/commands/lists.ts";

type ChangeRequest = Answer<"POST /v1/projects/:pid/change-requests">;
type Detail = Answer<"GET /v1/projects/:pid/change-requests/:number">;

const NUMBER = "NUMBER";

const summary = ({
  number,
  status,
  title,
  head_ref: head,
  base_ref: base,
  merged_commit: commit,
}: ChangeRequest) =>
  visible(
    `#${number} ${status}: ${title} (${head} into ${base}${commit === null ? "" : `, merged as ${commit}`})`,
  );

const more = (left: number, what: string): string => (left > 0 ? `${left} more ${what} are not listed.` : "");

const mergeable = ({ status, mergeable: clean, conflicts }: Detail): string | null => {
  if (status !== "open") return null;
  if (clean) return "yes";
  return conflicts.length === 0 ? "no" : `no, conflicts in ${conflicts.join(", ")}`;
};

/** One line for each mistake that a merge would bring. */
const warned = ({ warnings }: Detail): readonly string[] =>
  warnings.map(({ file, line, message }) =>
    visible(`warning: ${file}${line === null ? "" : `:${line}`}: ${message}`),
  );

const shown = (request: Detail): string => {
  const parts = [
    fields([
      ["change request", `#${request.number} ${request.title}`],
      ["status", request.status],
      ["branch", `${request.head_ref} into ${request.base_ref}`],
      ["session", request.session_id],
      ["opened", time(request.created_at)],
      ["mergeable", mergeable(request)],
      [
        "merged",
        request.merged_at === null ? null : `${time(request.merged_at)} as ${request.merged_commit ?? ""}`,
      ],
    ]),
    warned(request).join("\n"),
    request.description === "" ? "" : visibleLines(request.description),
    table(
      ["COMMIT", "AUTHOR", "AT", "SUBJECT"],
      request.commits.map(({ sha, author_name: author, committed_at: at, subject }) => [sha.slice(0, 12), author, time(at), subject]), // prettier-ignore
      "",
    ),
    table(
      ["ADDED", "REMOVED", "FILE"],
      request.files_changed.map(({ path, additions, deletions }) => [
        String(additions),
        String(deletions),
        path,
      ]),
      "",
    ),
    more(request.commits_total - request.commits.length, "commits"),
    more(request.files_changed_total - request.files_changed.length, "files"),
  ];
  return parts.filter((part) => part !== "").join("\n\n");
};

/** The branch: a session's, one by name, or that of the session in whose sandbox this runs. */
const head = (
  { session, head: branch }: { readonly session: string | undefined; readonly head: string | undefined },
  environment: Readonly<Record<string, string | undefined>>,
) => {
  if (session !== undefined && branch !== undefined) throw usage("Give --session or --head, not both.");
  if (branch !== undefined) return { head_ref: branch };
  const named = session ?? environment["PLATFORM_SESSION_ID"] ?? "";
  if (named === "") throw usage("Give --session ID or --head BRANCH.");
  return { session_id: sessionId(named) };
};

const create = command({
  name: "cr create",
  about: "Open a change request for a session's branch, or for another one",
  inProject: true,
  options: {
    title: { value: "TEXT", about: "Summary of the change, in one line" },
    description: { value: "TEXT", about: "More details for the reviewer" },
    "description-file": { value: "FILE", about: "Read it from a file (- for standard input)" },
    session: { value: "SESSION", about: "The session whose branch to merge (PLATFORM_SESSION_ID)" },
    head: { value: "BRANCH", about: "A branch that does not belong to a session" },
  },
  notes: "Push your commits first: `git push origin HEAD`.",
  run: async ({ options, environment, input, api, project }) => {
    const { title, description, "description-file": file } = options;
    if (title === undefined) throw usage("--title is missing.");
    if (description !== undefined && file !== undefined)
      throw usage("Give --description or --description-file, not both.");
    const told = file === undefined ? description : await input.file(file, "--description-file");
    const payload = {
      ...head(options, environment),
      title,
      ...(told !== undefined && { description: told }),
    };
    const { value, text } = await api().call("POST /v1/projects/:pid/change-requests", {
      params: { pid: await project() },
      payload,
    });
    return { json: text, text: summary(value) };
  },
});

const list = command({
  name: "cr list",
  about: "List change requests, newest first",
  inProject: true,
  options: {
    status: { value: "STATUS", about: "Only those with this status: open, merged or closed" },
    ...pageOptions,
  },
  run: async ({ options, api, project, note }) => {
    const status = oneOf(options.status, ["open", "merged", "closed"], "--status");
    const answered = await api().call("GET /v1/projects/:pid/change-requests", {
      params: { pid: await project() },
      query: { ...page(options), ...(status !== undefined && { status }) },
    });
    const rows = answered.value.change_requests.map((request) => [
      String(request.number),
      request.status,
      request.head_ref,
      timeOrDash(request.merged_at ?? request.updated_at),
      request.title,
    ]);
    return pageOutcome(
      answered,
      table(["NUMBER", "STATUS", "BRANCH", "CHANGED", "TITLE"], rows, "No change requests."),
      note,
    );
  },
});

const show = command({
  name: "cr show",
  about: "Show a change request: its commits, its files, and whether it can be merged",
  takes: [NUMBER],
  inProject: true,
  run: async ({ given, api, project }) => {
    const number = count(given.NUMBER, NUMBER);
    const { value, text } = await api().call("GET /v1/projects/:pid/change-requests/:number", {
      params: { pid: await project(), number },
    });
    return { json: text, text: shown(value) };
  },
});

const diff = command({
  name: "cr diff",
  about: "Print the diff of a change request",
  takes: [NUMBER],
  inProject: true,
  notes:
    'With --json, the output is {"diff": TEXT}. A file or a pipe gets the diff byte for byte. A terminal gets control characters as visible text.',
  run: async ({ given, api, project }) => {
    const number = count(given.NUMBER, NUMBER);
    const { value } = await api().call("GET /v1/projects/:pid/change-requests/:number/diff", {
      params: { pid: await project(), number },
    });
    return {
      json: JSON.stringify({ diff: value }),
      text: visibleLines(value).replace(/\n$/, ""),
      raw: value,
    };
  },
});

const merge = command({
  name: "cr merge",
  about: "Merge a change request into its base branch",
  takes: [NUMBER],
  inProject: true,
  options: { message: { value: "TEXT", about: "Message of the merge commit, if one is needed" } },
  notes:
    "Only a user's token can merge. The token of a session or a trigger ends with exit code 3. A conflict ends with exit code 5 and lists the paths.",
  run: async ({ given, options: { message }, api, project, note }) => {
    const params = { pid: await project(), number: count(given.NUMBER, NUMBER) };
    const before = await api().call("GET /v1/projects/:pid/change-requests/:number", { params });
    for (const line of warned(before.value)) note(line);
    const { value, text } = await api().call("POST /v1/projects/:pid/change-requests/:number/merge", {
      params,
      payload: { ...(message !== undefined && { message }) },
    });
    return { json: text, text: summary(value) };
  },
});

const close = command({
  name: "cr close",
  about: "Close a change request without merging it",
  takes: [NUMBER],
  inProject: true,
  run: async ({ given, api, project }) => {
    const number = count(given.NUMBER, NUMBER);
    const { value, text } = await api().call("POST /v1/projects/:pid/change-requests/:number/close", {
      params: { pid: await project(), number },
    });
    return { json: text, text: summary(value) };
  },
});

export const changeRequestCommands = [create, list, show, diff, merge, close];
