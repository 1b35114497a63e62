/** `platform cr`: proposes, shows and merges work. */
import type { Answer } from "../../cli/contract.ts";
import { type Columns, recordTable } from "../../cli/endpoint/columns.ts";
import { command } from "../../cli/command.ts";
import { endpoint } from "../../cli/endpoint/endpoint.ts";
import { usageFailure } from "../../cli/failure.ts";
import { fieldLines, table, time, timeOrDash, safeLine, safeLines } from "../../cli/terminal.ts";
import { anyId, count, parseWord, sessionId } from "../../cli/words.ts";
import { page, pageNote, pageOptions, pageOutcome } from "../../cli/commands/lists.ts";
import { quantity } from "../../domain/counted.ts";

type ChangeRequest = Answer<"POST /v1/projects/:pid/change-requests">;
type Remark = Answer<"POST /v1/projects/:pid/change-requests/:number/remarks">;
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
  safeLine(
    `#${number} ${status}: ${title} (${head} into ${base}${commit === null ? "" : `, merged as ${commit}`})`,
  );

const more = (left: number, what: string): string => (left > 0 ? `${left} more ${what} are not listed.` : "");

const mergeable = ({ status, mergeable: clean, conflicts }: Detail): string | null => {
  if (status !== "open") return null;
  if (clean) return "yes";
  return conflicts.length === 0 ? "no" : `no, conflicts in ${conflicts.join(", ")}`;
};

/** Each person's newest verdict, and how many approvals a merge needs. */
const verdictsText = ({ verdicts, approvals_required: required, status }: Detail): string | null => {
  const lines = verdicts.map(
    ({ by, kind, why_not: why }) =>
      `${by.name} ${VERDICTS[kind]}${why === null ? "" : `, which does not count: ${why}`}`,
  );
  const approvals = verdicts.filter(({ counts }) => counts).length;
  if (status === "open" && required > 0)
    lines.push(`${approvals} of ${quantity(required, "approval")} that a merge needs`);
  return lines.length === 0 ? null : lines.join("\n");
};

/** Who was asked for a review. An answer is one of the verdicts. */
const reviewersText = ({ reviewers }: Detail): string | null =>
  reviewers.length === 0
    ? null
    : reviewers
        .map(
          ({ name, answer }) =>
            `${name} ${answer === null ? "has not answered" : answer === "comment" ? "commented" : VERDICTS[answer]}`,
        )
        .join("\n");

/** One line for each mistake that a merge would bring. */
const warningLines = ({ warnings }: Detail): readonly string[] =>
  warnings.map(({ file, line, message }) =>
    safeLine(`warning: ${file}${line === null ? "" : `:${line}`}: ${message}`),
  );

/** Whether a file is binary, its former path, and its new mode: the numbers of lines do not show them. */
const kindOfChange = ({ binary, renamed_from: from, mode }: Detail["files_changed"][number]): string => {
  const notes = [
    binary === true ? "binary" : "",
    from === undefined ? "" : `renamed from ${from}`,
    mode === undefined ? "" : `mode ${mode}`,
  ].filter((text) => text !== "");
  return notes.length === 0 ? "" : ` (${notes.join(", ")})`;
};

const requestText = (request: Detail): string => {
  const parts = [
    fieldLines([
      ["change request", `#${request.number} ${request.title}`],
      ["status", request.status],
      ["branch", `${request.head_ref} into ${request.base_ref}`],
      ["session", request.session_id],
      ["opened", time(request.created_at)],
      ["mergeable", mergeable(request)],
      ["reviewers", reviewersText(request)],
      ["verdicts", verdictsText(request)],
      [
        "merged",
        request.merged_at === null ? null : `${time(request.merged_at)} as ${request.merged_commit ?? ""}`,
      ],
    ]),
    warningLines(request).join("\n"),
    request.description === "" ? "" : safeLines(request.description),
    table(
      ["COMMIT", "AUTHOR", "AT", "SUBJECT"],
      request.commits.map(({ sha, author_name: author, committed_at: at, subject }) => [sha.slice(0, 12), author, time(at), subject]), // prettier-ignore
      "",
    ),
    table(
      ["ADDED", "REMOVED", "FILE"],
      request.files_changed.map((file) => [
        String(file.additions),
        String(file.deletions),
        file.path + kindOfChange(file),
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
  if (session !== undefined && branch !== undefined)
    throw usageFailure("Give --session or --head, not both.");
  if (branch !== undefined) return { head_ref: branch };
  const sessionName = session ?? environment["PLATFORM_SESSION_ID"] ?? "";
  if (sessionName === "") throw usageFailure("Give --session ID or --head BRANCH.");
  return { session_id: sessionId(sessionName) };
};

const create = endpoint("POST /v1/projects/:pid/change-requests", {
  name: "cr create",
  about: "Open a change request for a session's branch, or for another one",
  options: {
    title: { value: "TEXT", about: "Summary of the change, in one line" },
    description: { value: "TEXT", about: "More details for the reviewer" },
    "description-file": {
      value: "FILE",
      about: "Read it from a file (- for standard input)",
      sets: "description",
      from: "file",
    },
    session: {
      value: "SESSION",
      about: "The session whose branch to merge (PLATFORM_SESSION_ID)",
      sets: null,
    },
    head: { value: "BRANCH", about: "A branch that does not belong to a session", sets: null },
  },
  notes: "Push your commits first: `git push origin HEAD`.",
  sends: ({ options, environment }) => ({ payload: head(options, environment) }),
  shows: summary,
});

const list = command({
  name: "cr list",
  about: "List change requests, newest first",
  inProject: true,
  options: {
    status: { value: "STATUS", about: "Only those with this status: open, merged or closed" },
    reviewer: { value: "me", about: "Only those that wait for your review" },
    all: { about: "Of all your projects" },
    ...pageOptions,
  },
  run: async ({ options, api, project, note }) => {
    const status = parseWord(options.status, ["open", "merged", "closed"], "--status");
    const reviewer = parseWord(options.reviewer, ["me"], "--reviewer");
    const query = {
      ...page(options),
      ...(status !== undefined && { status }),
      ...(reviewer !== undefined && { reviewer }),
    };
    const answer = options.all
      ? await api().call("GET /v1/change-requests", { query })
      : await api().call("GET /v1/projects/:pid/change-requests", {
          params: { pid: await project() },
          query,
        });
    const columns: Columns<Answer<"GET /v1/change-requests">["change_requests"][number]> = {
      ...(options.all && { PROJECT: "project_id" }),
      NUMBER: "number",
      STATUS: "status",
      BRANCH: "head_ref",
      CHANGED: (request) => timeOrDash(request.merged_at ?? request.updated_at),
      "ASKED BY": ({ review_asked: asked }) => asked?.by.name ?? null,
      TITLE: "title",
    };
    const shownRows = recordTable(columns, answer.value.change_requests, "No change requests.");
    return pageOutcome(answer, shownRows, note);
  },
});

const show = endpoint("GET /v1/projects/:pid/change-requests/:number", {
  name: "cr show",
  about: "Show a change request: its commits, its files, and whether it can be merged",
  takes: [NUMBER],
  shows: requestText,
});

const diff = endpoint("GET /v1/projects/:pid/change-requests/:number/diff", {
  name: "cr diff",
  about: "Print the diff of a change request",
  takes: [NUMBER],
  notes:
    'With --json, the output is {"diff": TEXT}. A file or a pipe gets the diff byte for byte. A terminal gets control characters as visible text.',
  shows: (text) => ({
    json: JSON.stringify({ diff: text }),
    text: safeLines(text).replace(/\n$/, ""),
    raw: text,
  }),
});

const merge = endpoint("POST /v1/projects/:pid/change-requests/:number/merge", {
  name: "cr merge",
  about: "Merge a change request into its base branch",
  example: "cr merge 12 --squash",
  asks: async ({ given, api, project }) => {
    const params = { pid: await project(), number: count(given.NUMBER, NUMBER) };
    const { value } = await api().call("GET /v1/projects/:pid/change-requests/:number", { params });
    return [...warningLines(value), `Merge #${params.number} into ${value.base_ref}?`].join("\n");
  },
  takes: [NUMBER],
  options: {
    message: { value: "TEXT", about: "Message of the merge commit, if one is needed, or of the squash" },
    squash: { about: "As one commit with all changes" },
  },
  notes:
    "Only a user's token can merge. The token of a session or a trigger ends with exit code 3. A conflict ends with exit code 5 and lists the paths.",
  sends: async ({ given, api, project, note }) => {
    const params = { pid: await project(), number: count(given.NUMBER, NUMBER) };
    const { value } = await api().call("GET /v1/projects/:pid/change-requests/:number", { params });
    for (const line of warningLines(value)) note(line);
    return {};
  },
  shows: summary,
});

const close = endpoint("POST /v1/projects/:pid/change-requests/:number/close", {
  name: "cr close",
  about: "Close a change request without merging it",
  asks: ({ given }) => `Close #${given.NUMBER} without merging it?`,
  takes: [NUMBER],
  shows: summary,
});

const edit = endpoint("PATCH /v1/projects/:pid/change-requests/:number", {
  name: "cr edit",
  about: "Change a change request's title or description",
  takes: [NUMBER],
  options: {
    title: { value: "TEXT", about: "Summary of the change, in one line" },
    description: { value: "TEXT", about: "More details for the reviewer" },
  },
  shows: summary,
});

const VERDICTS = { comment: "says", approval: "approves", changes_requested: "asks for changes" } as const;

const placeText = ({ place }: Remark): string => {
  if (place === null) return "";
  const { file, side, first_line: first, last_line: last } = place;
  return ` on ${file}:${first}${last === first ? "" : `-${last}`}${side === "base" ? " as it was" : ""}`;
};

/** Who says what, and the text below it. */
const remarkText = (remark: Remark): string => {
  const {
    id,
    kind,
    created_by: by,
    created_at: at,
    outdated,
    resolved_at: resolved,
    reply_to: above,
  } = remark;
  const marks = [
    ...(above === null ? [] : [`answers ${above}`]),
    ...(outdated ? ["before the last push"] : []),
    ...(resolved === null ? [] : ["resolved"]),
  ];
  const mark = marks.length === 0 ? "" : ` (${marks.join(", ")})`;
  const title = safeLine(`${id} ${time(at)} ${by.name} ${VERDICTS[kind]}${placeText(remark)}${mark}`);
  const body = safeLines(remark.body).replaceAll(/^(?=.)/gm, "  ");
  return body === "" ? title : `${title}\n${body}`;
};

const comments = endpoint("GET /v1/projects/:pid/change-requests/:number/remarks", {
  name: "cr comments",
  about: "List what people say of a change request, the oldest first",
  takes: [NUMBER],
  options: pageOptions,
  shows: (answer, { note }) => {
    pageNote(answer, note);
    return answer.remarks.map(remarkText).join("\n") || "No comments.";
  },
});

/** `12`, or `12-14`. */
const readLines = (text: string): { readonly first_line: number; readonly last_line: number } => {
  const [, first = "", last = first] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(text) ?? [];
  if (first === "") throw usageFailure("--lines must be a line, such as 12, or a range, such as 12-14.");
  return { first_line: Number(first), last_line: Number(last) };
};

const REMARK = "POST /v1/projects/:pid/change-requests/:number/remarks";

const comment = endpoint(REMARK, {
  name: "cr comment",
  about: "Comment on a change request, or on lines of a file",
  takes: [NUMBER],
  options: {
    body: { value: "TEXT", about: "The comment, as Markdown" },
    file: { value: "PATH", about: "The file that it is about", sets: null },
    lines: { value: "LINES", about: "Its lines, such as 12 or 12-14", sets: null },
    side: { value: "SIDE", about: "Which version of the file: head or base (head)", sets: null },
    "reply-to": { value: "COMMENT", about: "The comment that it answers" },
  },
  sends: ({ options: { body, file, lines, side } }) => {
    if (body === undefined) throw usageFailure("--body is missing.");
    if ((file === undefined) !== (lines === undefined))
      throw usageFailure("Give --file and --lines together.");
    const version = parseWord(side, ["head", "base"], "--side") ?? "head";
    if (file === undefined || lines === undefined) return {};
    return { payload: { place: { file, side: version, ...readLines(lines) } } };
  },
  shows: remarkText,
});

/** A command that says a person's verdict. */
const verdict = (
  words: { readonly name: string; readonly about: string; readonly notes: string },
  kind: Exclude<keyof typeof VERDICTS, "comment">,
) =>
  endpoint(REMARK, {
    ...words,
    takes: [NUMBER],
    options: {
      body: { value: "TEXT", about: "What you say to it, as Markdown" },
      commit: { value: "COMMIT", about: "Only if this is still the newest commit of the branch" },
    },
    always: { kind },
    sends: ({ options: { body } }) => {
      if (body === undefined && kind === "changes_requested") throw usageFailure("--body is missing.");
      return {};
    },
    shows: remarkText,
  });

const approve = verdict(
  {
    name: "cr approve",
    about: "Approve a change request's newest commit",
    notes:
      "A push takes the approval away. Who opened the change request cannot approve it for a project that demands approvals.",
  },
  "approval",
);
const requestChanges = verdict(
  {
    name: "cr request-changes",
    about: "Ask for changes to a change request",
    notes: "It replaces your approval, if you gave one.",
  },
  "changes_requested",
);

const ask = command({
  name: "cr ask",
  about: "Ask a member of the project to review a change request",
  takes: [NUMBER, "PERSON"],
  inProject: true,
  options: { withdraw: { about: "Take it back" } },
  notes: "Ask again after a push: the person is told once more.",
  run: async ({ given, options: { withdraw }, api, project }) => {
    const params = {
      pid: await project(),
      number: count(given.NUMBER, NUMBER),
      id: anyId(given.PERSON, "PERSON"),
    };
    const route = "/v1/projects/:pid/change-requests/:number/reviewers/:id" as const;
    if (withdraw) {
      const { text } = await api().call(`DELETE ${route}`, { params });
      return { json: text, text: `The person is no longer asked to review #${params.number}.` };
    }
    const { value, text } = await api().call(`PUT ${route}`, { params });
    return { json: text, text: safeLine(`${value.name} is asked to review #${params.number}.`) };
  },
});

const resolve = endpoint("PATCH /v1/projects/:pid/change-requests/:number/remarks/:id", {
  name: "cr resolve",
  about: "Mark a comment as resolved",
  takes: [NUMBER, "COMMENT"],
  options: { reopen: { about: "Mark it as not resolved", sets: "resolved", to: false } },
  always: { resolved: true },
  shows: remarkText,
});

export const changeRequestCommands = [
  create,
  list,
  show,
  diff,
  edit,
  comments,
  comment,
  ask,
  approve,
  requestChanges,
  resolve,
  merge,
  close,
];
