import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { withFilters } from "../../../src/domain/manifest/manifest-filters.ts";
import { webhookVariables, type JsonValue } from "../../../src/domain/trigger/prompt.ts";
import { SKIP_FIELDS } from "../../../src/domain/trigger/event-skip.ts";
import {
  isPing,
  pushedSessions,
  webhookEvent,
  type EventHeaders,
} from "../../../src/domain/trigger/webhook-event.ts";
import { matchesFilter, readWebhookFilter } from "../../../src/domain/trigger/webhook-filter.ts";
import { cron, onlyError, parse, slugs, webhook } from "../manifest/manifest-text.ts";

interface Delivery {
  readonly event?: string;
  readonly headers?: EventHeaders;
  readonly body?: JsonValue;
}

/** Whether a delivery matches the filter that a manifest spells so. */
const matches = (filter: string, { event, headers = {}, body = {} }: Delivery): boolean => {
  const [trigger] = parse(`${webhook()}\n[webhooks.hook]\n${filter}\n`).triggers;
  if (trigger?.type !== "webhook" || trigger.filter === undefined) throw new Error("no filter");
  const all = event === undefined ? headers : { "x-github-event": event, ...headers };
  const variables = webhookVariables(trigger, {
    firedAtMs: 0,
    body,
    headers: { contentType: "application/json", userAgent: undefined, forwardedFor: undefined },
  });
  return matchesFilter(trigger.filter, webhookEvent(all, body), variables);
};

const push = (branch: string): Delivery => ({ event: "push", body: { ref: `refs/heads/${branch}` } });
const pull = (action: string, base = "main"): Delivery => ({
  event: "pull_request",
  body: { action, pull_request: { base: { ref: base }, head: { ref: "topic" } } },
});

test("events match by name, or by name and action", () => {
  const filter = 'events = ["push", "pull_request.opened"]';
  expect(matches(filter, push("main"))).toBe(true);
  expect(matches(filter, pull("opened"))).toBe(true);
  expect(matches(filter, pull("closed"))).toBe(false);
  expect(matches(filter, { event: "pull_request" })).toBe(false);
  expect(matches(filter, { event: "Push" })).toBe(false);
  expect(matches(filter, { event: "pull_request.opened" })).toBe(true);
  expect(matches(filter, { body: { action: "opened" } })).toBe(false);
  expect(matches('events = ["pull_request"]', pull("closed"))).toBe(true);
});

const by = (sender: JsonValue): Delivery => ({ event: "issue_comment", body: { action: "created", sender } });

test("unless excludes what has one of its values", () => {
  const filter =
    'events = ["issue_comment"]\nunless = { "body.sender.login" = "our-bot", "body.sender.type" = "Bot" }';
  expect(matches(filter, by({ login: "ada", type: "User" }))).toBe(true);
  expect(matches(filter, by({ login: "our-bot", type: "User" }))).toBe(false);
  expect(matches(filter, by({ login: "ada", type: "Bot" }))).toBe(false);
  expect(matches(filter, by(null))).toBe(true);
  expect(onlyError(parse(`${webhook()}\n[webhooks.hook]\nunless = {}\n`)).message).toContain(
    "unless must be a table",
  );
});

test.each([
  [{ "x-platform-event": "deploy" }, "deploy"],
  [{ "x-gitea-event": "push", "x-gogs-event": "other" }, "push"],
  [{ "x-github-event": "push", "x-gitea-event": "other" }, "push"],
  [{ "x-forgejo-event": "push" }, "push"],
  [{ "x-gitlab-event": "Push Hook" }, "Push Hook"],
  [{ "x-event-key": "repo:push" }, "repo:push"],
  [{ "x-github-event": "", "x-event-key": "repo:push" }, "repo:push"],
])("the event's name comes from the first header that names one: %j", (headers, event) => {
  expect(matches(`events = ["${event}"]`, { headers })).toBe(true);
  expect(matches('events = ["other"]', { headers })).toBe(false);
});

test("GitLab's action and target branch are read from its own fields", () => {
  const merge = {
    headers: { "x-gitlab-event": "Merge Request Hook" },
    body: { object_attributes: { action: "open", target_branch: "main" } },
  };
  expect(matches('events = ["Merge Request Hook.open"]\nbranches = ["main"]', merge)).toBe(true);
  expect(matches('events = ["Merge Request Hook.close"]', merge)).toBe(false);
  expect(matches('branches = ["topic"]', merge)).toBe(false);
});

test("branches are those of pushes and the targets of pull requests; an event without one matches no pattern", () => {
  const filter = 'branches = ["main"]';
  expect(matches(filter, push("main"))).toBe(true);
  expect(matches(filter, push("mainline"))).toBe(false);
  expect(matches(filter, pull("opened"))).toBe(true);
  expect(matches(filter, pull("opened", "topic"))).toBe(false);
  expect(matches(filter, { event: "push", body: { ref: "refs/tags/main" } })).toBe(false);
  expect(matches(filter, { event: "create", body: { ref: "main", ref_type: "branch" } })).toBe(true);
  expect(matches(filter, { event: "create", body: { ref: "main", ref_type: "tag" } })).toBe(false);
  expect(matches(filter, { event: "issues", body: { action: "opened" } })).toBe(false);
  expect(matches(filter, { body: { ref: ["refs/heads/main"] } })).toBe(false);
});

test.each([
  ["release/*", ["release/1", "release/", "release/1.2-rc"], ["release", "release/1/2", "x/release/1"]],
  ["release/**", ["release/1", "release/1/2"], ["release"]],
  ["**", ["main", "a/b/c"], []],
  ["*", ["main"], ["a/b"]],
  ["*-fix", ["a-fix", "-fix"], ["a-fixes", "x/a-fix"]],
  ["v*.*", ["v1.2", "v1.2.3"], ["v1", "v1/2.3"]],
  ["a.c", ["a.c"], ["abc"]],
  ["[main]", ["[main]"], ["m"]],
  ["**/x", ["a/x", "a/b/x"], ["x"]],
])("the pattern %s matches %j and not %j", (pattern, yes, no) => {
  const isMatch = (branch: string) => matches(`branches = [${JSON.stringify(pattern)}]`, push(branch));
  expect(yes.filter((branch) => !isMatch(branch))).toEqual([]);
  expect(no.filter(isMatch)).toEqual([]);
});

test("the worst pattern against the longest branch takes no more steps than the sum of their lengths", () => {
  const patterns = Array.from({ length: 50 }, () => "*a".repeat(127)).map((text) =>
    JSON.stringify(`${text}b`),
  );
  expect(matches(`branches = [${patterns.join(",")}]`, push("a".repeat(256)))).toBe(false);
  expect(matches('branches = ["**"]', push("a".repeat(1024 * 1024)))).toBe(false);
});

test("conditions compare the value at a template path, without conversion", () => {
  const body = { action: "opened", number: 1, draft: false, labels: [{ name: "bug" }], none: null };
  const holds = (condition: string) => matches(`if = { ${condition} }`, { body });
  expect(holds('"body.action" = "opened"')).toBe(true);
  expect(holds('"body.labels.0.name" = "bug", "body.draft" = false')).toBe(true);
  expect(holds('"body.number" = 1')).toBe(true);
  expect(holds('"body.number" = 1.0')).toBe(true);
  expect(holds('"headers.content_type" = "application/json"')).toBe(true);
  for (const other of [
    '"body.action" = "closed"',
    '"body.number" = "1"',
    '"body.draft" = "false"',
    '"body.none" = ""',
    '"body.missing" = ""',
    '"body.toString" = ""',
    '"body.action" = "opened", "body.number" = 2',
  ])
    expect([other, holds(other)]).toEqual([other, false]);
});

const forced = (is: boolean): Delivery => ({ event: "push", body: { ref: "refs/heads/main", forced: is } });

test("all parts of a filter must match", () => {
  const filter = 'events = ["push"]\nbranches = ["main"]\nif = { "body.forced" = false }';
  expect(matches(filter, forced(false))).toBe(true);
  expect(matches(filter, forced(true))).toBe(false);
  expect(matches(filter, push("main"))).toBe(false);
});

test("a ping is recognised as GitHub marks it", () => {
  expect(isPing({ "x-github-event": "ping" })).toBe(true);
  for (const headers of [{}, { "x-github-event": "Ping" }, { "x-gitlab-event": "ping" }])
    expect(isPing(headers)).toBe(false);
});

// In the manifest -----------------------------------------------------------------------------------------------------

test("a filter is read before or after its trigger", () => {
  const filter = '[webhooks.hook]\nevents = ["push"]\nif = { "body.x" = 1 }\n';
  for (const text of [`${webhook()}\n${filter}`, `${filter}\n${webhook()}`]) {
    const manifest = parse(text);
    expect(manifest.errors).toEqual([]);
    expect(manifest.triggers).toMatchObject([
      {
        slug: "hook",
        filter: { events: ["push"], branches: null, conditions: [{ path: "body.x", equals: 1 }] },
      },
    ]);
  }
});

test.each([
  ["", "webhooks.hook"],
  ["event = ['push']", "webhooks.hook"],
  ["events = ['push']\nbranch = ['main']", "webhooks.hook.branch"],
  ["events = 'push'", "webhooks.hook.events"],
  ["events = []", "webhooks.hook.events"],
  ["events = ['push', 1]", "webhooks.hook.events[1]"],
  ["events = ['']", "webhooks.hook.events[0]"],
  ["events = ['ping']", "webhooks.hook.events[0]"],
  ["branches = {}", "webhooks.hook.branches"],
  ["branches = ['refs/heads/main']", "webhooks.hook.branches[0]"],
  ["branches = [['main']]", "webhooks.hook.branches[0]"],
  [`branches = ['${"a".repeat(257)}']`, "webhooks.hook.branches[0]"],
  ["if = {}", "webhooks.hook.if"],
  ["if = 'body.action'", "webhooks.hook.if"],
  ["if = [{ 'body.action' = 'opened' }]", "webhooks.hook.if"],
  ["if = { body.action = 'opened' }", "webhooks.hook.if.body"],
  ["if = { action = 'opened' }", "webhooks.hook.if.action"],
  ["if = { 'body..x' = 1 }", "webhooks.hook.if.body..x"],
  ["if = { 'trigger.slug' = 'hook' }", "webhooks.hook.if.trigger.slug"],
  ["if = { 'headers.x_github_event' = 'push' }", "webhooks.hook.if.headers.x_github_event"],
  ["if = { 'body.x' = [1] }", "webhooks.hook.if.body.x"],
  ["if = { 'body.x' = nan }", "webhooks.hook.if.body.x"],
  ["if = { 'body.x' = 9007199254740993 }", "webhooks.hook.if.body.x"],
  ["if = { 'body.x' = 2026-01-01 }", "webhooks.hook.if.body.x"],
])("a filter with an error, %j, disables its trigger", (filter, path) => {
  const manifest = parse(`${webhook()}\n${cron()}\n[webhooks.hook]\n${filter}\n`);
  expect(slugs(manifest)).toEqual(["nightly"]);
  expect(manifest.fatal).toBe(false);
  expect(manifest.errors.map((error) => error.path)).toContain(path);
  for (const error of manifest.errors) {
    expect(error).toMatchObject({ slug: "hook", index: 0, line: 13 });
    expect(error.message).toContain("The trigger does not run until its filter is fixed.");
  }
});

test.each(["webhooks = 1", "webhooks = [{ slug = 'hook' }]"])(
  "%s disables all webhook triggers, because the filter's trigger is unknown",
  (text) => {
    const manifest = parse(`${text}\n${webhook()}\n${cron()}`);
    expect(slugs(manifest)).toEqual(["nightly"]);
    expect(onlyError(manifest)).toMatchObject({ slug: null, path: "webhooks", line: 1 });
  },
);

test("a value in place of a filter's table disables that trigger alone", () => {
  const manifest = parse(`webhooks.hook = true\n${webhook()}\n${webhook({ slug: '"other"' })}`);
  expect(slugs(manifest)).toEqual(["other"]);
  expect(onlyError(manifest)).toMatchObject({ slug: "hook", path: "webhooks.hook", line: null });
});

test("a filter without a webhook trigger is an error beside the good entries", () => {
  const manifest = parse(
    `${webhook()}\n${cron()}\n[webhooks.hoook]\nevents = ["push"]\n[webhooks.nightly]\nevents = ["push"]\n[webhooks."\u00e4"]\n`,
  );
  expect(slugs(manifest)).toEqual(["hook", "nightly"]);
  expect(manifest.errors).toMatchObject([
    { slug: "hoook", path: "webhooks.hoook", line: 13, message: "No trigger has this slug." },
    { slug: "nightly", path: "webhooks.nightly", line: 15 },
    { slug: "\u00e4", line: 17 },
  ]);
});

test("an invalid entry is reported once, not as a missing trigger", () => {
  const manifest = parse(`${webhook({ prompt: undefined })}\n[webhooks.hook]\nevents = ["push"]\n`);
  expect(onlyError(manifest).path).toBe("triggers[0].prompt");
});

test("many filters without a trigger are at most a hundred errors", () => {
  const strays = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`s${index}`, {}]));
  expect(withFilters({ triggers: [], places: new Map() }, strays, "").errors).toHaveLength(100);
});

test("a filter names at most ten unknown fields", () => {
  const unknown = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`x${index}`, 1]));
  const read = readWebhookFilter({ events: ["push"], ...unknown });
  expect(Result.getOrThrow(Result.flip(read))).toHaveLength(10);
});

const ID = "0199aaaa-0000-7000-8000-000000000001";
const OTHER_ID = "0199aaaa-0000-7000-8000-000000000002";
const ref = { ref: `refs/heads/${ID}` };
const cloud = (name: string, type = "branch") => ({ new: { type, name }, old: null });

// prettier-ignore
test.each<[string, EventHeaders, JsonValue, readonly string[]]>([
  ["GitHub, its creation", { "x-github-event": "push" }, { ...ref, before: "0".repeat(40) }, [ID]],
  ["GitHub, its deletion", { "x-github-event": "push" }, { ...ref, deleted: true }, [ID]],
  ["GitHub, a created ref", { "x-github-event": "create" }, { ref: ID, ref_type: "branch" }, [ID]],
  ["GitHub, a deleted ref", { "x-github-event": "delete" }, { ref: ID, ref_type: "branch" }, [ID]],
  ["Gitea", { "x-gitea-event": "push" }, ref, [ID]],
  ["GitLab", { "x-gitlab-event": "Push Hook" }, { object_kind: "push", ...ref }, [ID]],
  ["Bitbucket", { "x-event-key": "repo:push" }, { push: { changes: [cloud(ID), cloud(OTHER_ID)] } }, [ID, OTHER_ID]],
  ["Bitbucket, its deletion", { "x-event-key": "repo:push" }, { push: { changes: [{ new: null, old: { type: "branch", name: ID } }] } }, [ID]],
  ["Bitbucket Data Center", { "x-event-key": "repo:refs_changed" }, { changes: [{ ref: { id: `refs/heads/${ID}` } }] }, [ID]],
  ["a sender that names no event", {}, ref, [ID]],
])("a push to branches of sessions by %s", (_, headers, body, ids) => {
  expect(pushedSessions(headers, body)).toEqual(ids);
});

// prettier-ignore
test.each<[string, EventHeaders, JsonValue]>([
  ["another branch", { "x-github-event": "push" }, { ref: "refs/heads/main" }],
  ["a branch below one", { "x-github-event": "push" }, { ref: `refs/heads/${ID}/x` }],
  ["a tag", { "x-github-event": "push" }, { ref: `refs/tags/${ID}` }],
  ["a created tag", { "x-github-event": "create" }, { ref: ID, ref_type: "tag" }],
  ["a tag at GitLab", { "x-gitlab-event": "Tag Push Hook" }, { ref: `refs/tags/${ID}` }],
  ["a tag at Bitbucket", { "x-event-key": "repo:push" }, { push: { changes: [cloud(ID, "tag")] } }],
  ["one of two branches", { "x-event-key": "repo:push" }, { push: { changes: [cloud(ID), cloud("main")] } }],
  ["more branches than a host sends", { "x-event-key": "repo:push" }, { push: { changes: Array.from({ length: 101 }, () => cloud(ID)) } }],
  ["a pull request into one", { "x-github-event": "pull_request" }, { pull_request: { base: { ref: ID } } }],
  ["a pull request into one, without an event", {}, { pull_request: { base: { ref: ID } } }],
  ["another event", { "x-github-event": "code_scanning_alert" }, ref],
  ["no ref", { "x-github-event": "push" }, { push: { changes: "x" } }],
])("no session is looked for after %s", (_, headers, body) => {
  expect(pushedSessions(headers, body)).toEqual([]);
});

const included = (filter: string) => {
  const [trigger] = parse(`${webhook()}\n[webhooks.hook]\n${filter}\n`).triggers;
  return trigger?.type === "webhook" ? trigger.filter?.includes : undefined;
};

test.each(Object.entries(SKIP_FIELDS))("%s fires only if the filter says %s", (skip, field) => {
  expect(included(`${field} = true`)).toEqual([skip]);
  expect(included(`${field} = false`)).toEqual([]);
  expect(included('events = ["push"]')).toEqual([]);
  const mistake = parse(`${webhook()}\n[webhooks.hook]\n${field} = "yes"\n`);
  expect(onlyError(mistake).message).toContain(`${field} must be true or false.`);
});
