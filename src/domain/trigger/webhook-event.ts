/**
 * The subject of a webhook delivery: the event that its sender names, and the branch that it concerns. Filters and
 * `ping` use it (domain/trigger/webhook-filter.ts). Header names are in lower case, as Node gives them.
 */
import { parseUuid } from "../ids.ts";
import { valueAt, type JsonValue } from "./prompt.ts";

/** The first of these headers that is present and not empty names the event. */
const EVENT_HEADERS = [
  "x-platform-event",
  "x-github-event",
  "x-gitea-event",
  "x-forgejo-event",
  "x-gogs-event",
  "x-gitlab-event",
  "x-event-key",
] as const;
/** Paths of the action in the body: GitHub and compatible hosts, then GitLab. */
export const ACTION_PATHS = ["action", "object_attributes.action"] as const;
/** Paths of a pull request's target branch in the body: GitHub and compatible hosts, then GitLab. */
const TARGET_PATHS = ["pull_request.base.ref", "object_attributes.target_branch"] as const;
const BRANCH_PREFIX = "refs/heads/";
/** Events that tell of a moved, created or deleted ref: of GitHub and compatible hosts, of GitLab, of Bitbucket. */
const PUSHES: ReadonlySet<string> = new Set([
  "push",
  "create",
  "delete",
  "Push Hook",
  "System Hook",
  "repo:push",
  "repo:refs_changed",
]);
/**
 * Events of checks, pipelines and deployments, with the places of the branch that they are about: of GitHub and compatible hosts, of
 * GitLab, of Bitbucket. They follow a push. A job at GitLab of a merge request's pipeline has the request's ref, and names no branch.
 */
const CHECKS: ReadonlyMap<string, readonly string[]> = new Map([
  ["check_suite", ["check_suite.head_branch"]],
  ["check_run", ["check_run.check_suite.head_branch"]],
  ["workflow_run", ["workflow_run.head_branch"]],
  ["workflow_job", ["workflow_job.head_branch"]],
  // A deployment can be of a commit. Then the workflow that deploys names the branch.
  ["deployment", ["deployment.ref", "workflow_run.head_branch"]],
  ["deployment_status", ["deployment.ref", "workflow_run.head_branch"]],
  ["Pipeline Hook", ["merge_request.source_branch", "object_attributes.ref"]],
  ["Job Hook", ["ref"]],
  ["Deployment Hook", ["ref"]],
  ["repo:commit_status_created", ["commit_status.refname"]],
  ["repo:commit_status_updated", ["commit_status.refname"]],
]);

/** Paths of Bitbucket's lists of refs, which it sends instead of one: Cloud, then Data Center. */
const CHANGES_PATHS = ["push.changes", "changes"] as const;
/** No code host tells of more refs at once. */
const CHANGES_MAX = 100;

/** As Node gives them. A list does not name an event. */
export type EventHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface WebhookEvent {
  /** As the header spells it, e.g. `push` or `Merge Request Hook`. Null if no header names one. */
  readonly name: string | null;
  readonly action: string | null;
  /** The branch that was pushed to, or that a pull request targets. Null if the body names none. */
  readonly branch: string | null;
}

/** The first value at these paths that is a text. */
export const textAt = (body: JsonValue, paths: readonly string[]): string | null => {
  for (const path of paths) {
    const value = valueAt(body, path);
    if (typeof value === "string" && value !== "") return value;
  }
  return null;
};

/** GitHub's event for a created or deleted branch has the bare name, with the kind of ref beside it. */
const eventBranch = (body: JsonValue): string | null => {
  const target = textAt(body, TARGET_PATHS);
  if (target !== null) return target;
  const ref = textAt(body, ["ref"]);
  if (ref === null) return null;
  if (ref.startsWith(BRANCH_PREFIX)) return ref.slice(BRANCH_PREFIX.length);
  return valueAt(body, "ref_type") === "branch" ? ref : null;
};

const changedBranch = (change: JsonValue): string | null => {
  const ref = textAt(change, ["ref.id"]);
  if (ref !== null) return ref.startsWith(BRANCH_PREFIX) ? ref.slice(BRANCH_PREFIX.length) : null;
  const side = valueAt(change, "new.type") === undefined ? "old" : "new";
  return valueAt(change, `${side}.type`) === "branch" ? textAt(change, [`${side}.name`]) : null;
};

/** The changes of Bitbucket's list, one more than a host sends at most. Null for any other sender. */
export const refChanges = (body: JsonValue): readonly JsonValue[] | null => {
  for (const path of CHANGES_PATHS) {
    const changes = valueAt(body, path);
    if (Array.isArray(changes)) return changes.slice(0, CHANGES_MAX + 1);
  }
  return null;
};

/** The branches that a push moved, created or deleted. Null for a ref that is no branch. */
const pushedBranches = (body: JsonValue): readonly (string | null)[] => {
  const changes = refChanges(body);
  if (changes !== null) return changes.map(changedBranch);
  return textAt(body, TARGET_PATHS) === null ? [eventBranch(body)] : [];
};

/** The identifier of a commit, which can stand where a deployment has its branch. */
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** The branch that a check is about. Some senders give its whole ref. */
const checkedBranch = (body: JsonValue, places: readonly string[]): string | null => {
  const refs = places.map((place) => textAt(body, [place]));
  const ref = refs.find((text) => text !== null && !COMMIT.test(text)) ?? null;
  return ref !== null && ref.startsWith(BRANCH_PREFIX) ? ref.slice(BRANCH_PREFIX.length) : ref;
};

/** The branches of a push, or of what follows one. Null for a ref that is no branch. */
const concernedBranches = (name: string | null, body: JsonValue): readonly (string | null)[] => {
  if (name === null || PUSHES.has(name)) return pushedBranches(body);
  if (name === "status") {
    const branches = valueAt(body, "branches");
    return Array.isArray(branches) ? branches.map((branch) => textAt(branch, ["name"])) : [];
  }
  const places = CHECKS.get(name);
  return places === undefined ? [] : [checkedBranch(body, places)];
};

/**
 * The sessions whose branches a push would concern, or a check or deployment that follows one, by the form of their names, which every
 * one of its refs has. Empty for any other event. A push without a name of its event counts.
 */
export const pushedSessions = (headers: EventHeaders, body: JsonValue): readonly string[] => {
  const ids = concernedBranches(eventName(headers), body).map((branch) =>
    branch === null ? null : parseUuid(branch),
  );
  const sessions = ids.filter((id) => id !== null);
  return sessions.length < ids.length || ids.length > CHANGES_MAX ? [] : [...new Set(sessions)];
};

/** The event's name as its sender spells it. Null if no header names one. */
export const eventName = (headers: EventHeaders): string | null => {
  for (const name of EVENT_HEADERS) {
    const value = headers[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return null;
};

export const webhookEvent = (headers: EventHeaders, body: JsonValue): WebhookEvent => ({
  name: eventName(headers),
  action: textAt(body, ACTION_PATHS),
  branch: eventBranch(body),
});

/** GitHub's check whether the address answers. It starts nothing, whatever the filter says. */
export const isPing = (headers: EventHeaders): boolean => headers["x-github-event"] === "ping";
