/**
 * The subject of a webhook delivery: the event that its sender names, and the branch that it concerns. Filters and
 * `ping` use it (domain/webhook-filter.ts). Header names are in lower case, as Node gives them.
 */
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
const ACTION_PATHS = ["action", "object_attributes.action"] as const;
/** Paths of a pull request's target branch in the body: GitHub and compatible hosts, then GitLab. */
const TARGET_PATHS = ["pull_request.base.ref", "object_attributes.target_branch"] as const;
const BRANCH_PREFIX = "refs/heads/";

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
const textAt = (body: JsonValue, paths: readonly string[]): string | null => {
  for (const path of paths) {
    const value = valueAt(body, path);
    if (typeof value === "string" && value !== "") return value;
  }
  return null;
};

/** GitHub's event for a created or deleted branch has the bare name, with the kind of ref beside it. */
const branchOf = (body: JsonValue): string | null => {
  const target = textAt(body, TARGET_PATHS);
  if (target !== null) return target;
  const ref = textAt(body, ["ref"]);
  if (ref === null) return null;
  if (ref.startsWith(BRANCH_PREFIX)) return ref.slice(BRANCH_PREFIX.length);
  return valueAt(body, "ref_type") === "branch" ? ref : null;
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
  branch: branchOf(body),
});

/** GitHub's check whether the address answers. It starts nothing, whatever the filter says. */
export const isPing = (headers: EventHeaders): boolean => headers["x-github-event"] === "ping";
