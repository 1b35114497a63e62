/**
 * Deliveries that start nothing unless the trigger's filter asks for them: deletions of branches and tags, and acts of
 * the service itself that its code host reports back. Without this, one session would start the next one without end.
 * A delivery's own words are a suspicion here; services/triggers/own-events.ts compares them with the project's rows.
 *
 *  K1 A merge fires, and so does every end of a pull request: a person ordered it.
 *  K2 An act of a person on the service's pull request (a label, a review, a comment) fires.
 */
import { isRecord } from "../../ground/record.ts";
import { parseUuid } from "../ids.ts";
import { valueAt, type JsonValue } from "./prompt.ts";
import {
  ACTION_PATHS,
  eventName,
  pushedSessions,
  refChanges,
  textAt,
  type EventHeaders,
} from "./webhook-event.ts";

/** Each reason, with the field of a filter that asks for such deliveries. */
export const SKIP_FIELDS = {
  deletion: "deletions",
  own_push: "own_pushes",
  own_request: "own_requests",
  own_comment: "own_comments",
} as const;
export type EventSkip = keyof typeof SKIP_FIELDS;
export const EVENT_SKIPS = Object.keys(SKIP_FIELDS) as readonly EventSkip[];

/** How a pull request names its change request and is recognised by it. It stands in the text of the pull request. */
export const changeRequestMark = (id: string): string => `<!-- change request ${id} -->`;
const MARK = /<!-- change request ([0-9a-f-]{36}) -->/;

/** What identifies a pull request as one of the service's. */
export interface RequestClue {
  /** The session whose branch it proposes. */
  readonly sessionId: string | null;
  /** The change request whose mark its text, or the comment's, carries. */
  readonly changeRequestId: string | null;
  readonly number: number | null;
  /** The address of its page. */
  readonly url: string | null;
}

export type Suspicion =
  | { readonly reason: "deletion" }
  /** All of them must be sessions of the installation. */
  | { readonly reason: "own_push"; readonly sessionIds: readonly string[] }
  | { readonly reason: "own_request" | "own_comment"; readonly request: RequestClue };

const NO_COMMIT = /^0{40,64}$/;
/** Events that may tell of a deleted ref. */
const REF_EVENTS: ReadonlySet<string> = new Set([
  "push",
  "Push Hook",
  "Tag Push Hook",
  "System Hook",
  "repo:push",
  "repo:refs_changed",
]);

const isGone = (change: JsonValue): boolean =>
  isRecord(change) && (change["type"] === "DELETE" || (change["new"] === null && isRecord(change["old"])));

/** Whether the delivery tells of deleted branches or tags and of nothing else. */
export const isDeletion = (headers: EventHeaders, body: JsonValue): boolean => {
  const name = eventName(headers);
  if (name === "delete") return textAt(body, ["ref"]) !== null;
  if (name !== null && !REF_EVENTS.has(name)) return false;
  const changes = refChanges(body);
  if (changes !== null) return changes.length > 0 && changes.every(isGone);
  if (textAt(body, ["ref"])?.startsWith("refs/") !== true) return false;
  return valueAt(body, "deleted") === true || NO_COMMIT.test(textAt(body, ["after"]) ?? "");
};

/** Where a code host's deliveries have a pull request's parts. */
interface RequestForm {
  /** The first path that leads to a table names the form. */
  readonly at: string;
  readonly head: string;
  readonly text: string;
  readonly number: string;
  readonly url: string;
  /** The repositories of its two branches. Equal, unless it comes from a fork. */
  readonly repositories: readonly [head: string, base: string];
  /** The account that acted, and the one that opened the request. */
  readonly accounts: readonly [actor: string, opener: string];
}

const FORMS: readonly RequestForm[] = [
  // GitHub, Gitea and Forgejo.
  {
    at: "pull_request.head",
    head: "pull_request.head.ref",
    text: "pull_request.body",
    number: "pull_request.number",
    url: "pull_request.html_url",
    repositories: ["pull_request.head.repo.full_name", "pull_request.base.repo.full_name"],
    accounts: ["sender.id", "pull_request.user.id"],
  },
  // A comment on a pull request at GitHub, Gitea and Forgejo, which call it an issue.
  {
    at: "issue.pull_request",
    head: "issue.pull_request.head.ref",
    text: "issue.body",
    number: "issue.number",
    url: "issue.html_url",
    repositories: ["repository.full_name", "repository.full_name"],
    accounts: ["sender.id", "issue.user.id"],
  },
  // A comment on a merge request at GitLab, then the merge request itself.
  {
    at: "merge_request",
    head: "merge_request.source_branch",
    text: "merge_request.description",
    number: "merge_request.iid",
    url: "merge_request.url",
    repositories: ["merge_request.source_project_id", "merge_request.target_project_id"],
    accounts: ["user.id", "merge_request.author_id"],
  },
  {
    at: "object_attributes",
    head: "object_attributes.source_branch",
    text: "object_attributes.description",
    number: "object_attributes.iid",
    url: "object_attributes.url",
    repositories: ["object_attributes.source_project_id", "object_attributes.target_project_id"],
    accounts: ["user.id", "object_attributes.author_id"],
  },
  // Bitbucket Cloud, then Data Center.
  {
    at: "pullrequest",
    head: "pullrequest.source.branch.name",
    text: "pullrequest.description",
    number: "pullrequest.id",
    url: "pullrequest.links.html.href",
    repositories: ["pullrequest.source.repository.full_name", "pullrequest.destination.repository.full_name"],
    accounts: ["actor.uuid", "pullrequest.author.uuid"],
  },
  {
    at: "pullRequest",
    head: "pullRequest.fromRef.displayId",
    text: "pullRequest.description",
    number: "pullRequest.id",
    url: "pullRequest.links.self.0.href",
    repositories: ["pullRequest.fromRef.repository.id", "pullRequest.toRef.repository.id"],
    accounts: ["actor.id", "pullRequest.author.user.id"],
  },
];

/** Events of a pull request, by the names of all code hosts. */
const REQUEST_EVENTS =
  /^(?:pull_request|Merge Request Hook|pullrequest:(?!comment_)\w+|pr:(?!comment:)[\w:]+)$/;
/** Acts by which a pull request is opened, or follows a push to its branch. */
const UPDATES: ReadonlySet<string> = new Set([
  "opened",
  "open",
  "synchronize",
  "synchronized",
  "pullrequest:created",
  "pullrequest:updated",
  "pr:opened",
  "pr:from_ref_updated",
]);
/** K1. */
const ENDS: ReadonlySet<string> = new Set([
  "closed",
  "close",
  "merge",
  "pullrequest:fulfilled",
  "pullrequest:rejected",
  "pr:merged",
  "pr:declined",
  "pr:deleted",
]);
/** Where comments have their texts. */
const COMMENT_TEXTS: Readonly<Record<string, string>> = {
  issue_comment: "comment.body",
  pull_request_comment: "comment.body",
  pull_request_review_comment: "comment.body",
  pull_request_review: "review.body",
  commit_comment: "comment.body",
  "Note Hook": "object_attributes.note",
  "pullrequest:comment_created": "comment.content.raw",
  "pullrequest:comment_updated": "comment.content.raw",
  "pr:comment:added": "comment.text",
  "pr:comment:edited": "comment.text",
};
const sameAt = (body: JsonValue, [first, second]: readonly [string, string]): boolean => {
  const value = valueAt(body, first);
  return value !== undefined && value !== null && value === valueAt(body, second);
};

const markIn = (text: string | null): string | null => parseUuid(MARK.exec(text ?? "")?.[1] ?? "");

/** Numbers of pull requests fit into a column of this size. */
const NUMBER_MAX = 2 ** 31 - 1;

const clueIn = (body: JsonValue, form: RequestForm): RequestClue => {
  const number = valueAt(body, form.number);
  const isFork = valueAt(body, form.repositories[0]) !== valueAt(body, form.repositories[1]);
  return {
    sessionId: isFork ? null : parseUuid(textAt(body, [form.head]) ?? ""),
    changeRequestId: markIn(textAt(body, [form.text])),
    number:
      typeof number === "number" && Number.isInteger(number) && Math.abs(number) <= NUMBER_MAX
        ? number
        : null,
    url: textAt(body, [form.url]),
  };
};

const requestForm = (body: JsonValue): RequestForm | undefined =>
  FORMS.find(({ at }) => isRecord(valueAt(body, at)));

/** Without an event's name, only the act tells that this is no comment. */
const requestSuspicion = (name: string | null, body: JsonValue): readonly Suspicion[] => {
  const form = requestForm(body);
  if (form === undefined || (name !== null && !REQUEST_EVENTS.test(name))) return [];
  const act = textAt(body, ACTION_PATHS) ?? name ?? "";
  if (ENDS.has(act)) return [];
  const follows =
    UPDATES.has(act) || (act === "update" && textAt(body, ["object_attributes.oldrev"]) !== null);
  if (!follows && (name === null || !sameAt(body, form.accounts))) return []; // K2
  return [{ reason: "own_request", request: clueIn(body, form) }];
};

const NO_CLUE: RequestClue = { sessionId: null, changeRequestId: null, number: null, url: null };

/** A comment is the service's if it carries a mark, or if the app (GitHub's `Bot`) that opened the service's request wrote it. */
const commentSuspicion = (path: string, body: JsonValue): readonly Suspicion[] => {
  const changeRequestId = markIn(textAt(body, [path]));
  if (changeRequestId !== null) return [{ reason: "own_comment", request: { ...NO_CLUE, changeRequestId } }];
  const form = requestForm(body);
  return form !== undefined && valueAt(body, "sender.type") === "Bot" && sameAt(body, form.accounts)
    ? [{ reason: "own_comment", request: clueIn(body, form) }]
    : [];
};

/** The reasons why a delivery may start nothing, in the order in which they are checked. */
export const suspicions = (headers: EventHeaders, body: JsonValue): readonly Suspicion[] => {
  const sessionIds = pushedSessions(headers, body);
  const name = eventName(headers);
  const commentText = name === null ? undefined : COMMENT_TEXTS[name];
  return [
    ...(isDeletion(headers, body) ? [{ reason: "deletion" } as const] : []),
    ...(sessionIds.length > 0 ? [{ reason: "own_push", sessionIds } as const] : []),
    ...(commentText === undefined ? [] : commentSuspicion(commentText, body)),
    ...requestSuspicion(name, body),
  ];
};
