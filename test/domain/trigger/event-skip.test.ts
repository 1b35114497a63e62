import { expect, test } from "vitest";
import { isDeletion, suspicions } from "../../../src/domain/trigger/event-skip.ts";
import type { JsonValue } from "../../../src/domain/trigger/prompt.ts";
import type { EventHeaders } from "../../../src/domain/trigger/webhook-event.ts";

const ID = "0199aaaa-0000-7000-8000-000000000001";
const NONE = "0".repeat(40);
const gone = (name: string, type = "branch") => ({ new: null, old: { type, name } });
const github = (event: string) => ({ "x-github-event": event });

// prettier-ignore
test.each<[string, EventHeaders, JsonValue]>([
  ["a branch at GitHub", github("push"), { ref: "refs/heads/x", after: NONE, deleted: true, head_commit: null }],
  ["a tag at GitHub", github("push"), { ref: "refs/tags/v1", deleted: true }],
  ["a ref of a repository with SHA-256", github("push"), { ref: "refs/heads/x", after: "0".repeat(64) }],
  ["GitHub's own event", github("delete"), { ref: "x", ref_type: "branch" }],
  ["a branch at GitLab", { "x-gitlab-event": "Push Hook" }, { ref: "refs/heads/x", after: NONE, checkout_sha: null }],
  ["a tag at GitLab", { "x-gitlab-event": "Tag Push Hook" }, { ref: "refs/tags/x", after: NONE }],
  ["a tag at Gitea", { "x-gitea-event": "delete" }, { ref: "v1", ref_type: "tag", pusher_type: "user" }],
  ["branches at Bitbucket", { "x-event-key": "repo:push" }, { push: { changes: [gone("a"), gone("v1", "tag")] } }],
  ["a branch at Bitbucket Data Center", { "x-event-key": "repo:refs_changed" }, { changes: [{ ref: { id: "refs/heads/x" }, type: "DELETE", toHash: NONE }] }],
  ["a sender that names no event", {}, { ref: "refs/heads/x", after: NONE }],
])("a deletion: %s", (_, headers, body) => {
  expect(isDeletion(headers, body)).toBe(true);
  expect(suspicions(headers, body)[0]).toEqual({ reason: "deletion" });
});

// prettier-ignore
test.each<[string, EventHeaders, JsonValue]>([
  ["a push", github("push"), { ref: "refs/heads/x", before: NONE, after: "1".repeat(40), deleted: false }],
  ["one of two refs", { "x-event-key": "repo:push" }, { push: { changes: [gone("a"), { new: { type: "branch", name: "b" }, old: null }] } }],
  ["an empty list of refs", { "x-event-key": "repo:push" }, { push: { changes: [] } }],
  ["a deleted comment", github("issue_comment"), { action: "deleted", deleted: true, ref: "refs/heads/x" }],
  ["a sender's own field", {}, { deleted: true, after: NONE }],
])("no deletion: %s", (_, headers, body) => {
  expect(isDeletion(headers, body)).toBe(false);
});

const repo = { full_name: "octo/hello" };
const pull = (of: object = {}) => ({
  number: 7,
  html_url: "https://host.example/octo/hello/pull/7",
  body: "Adds it.",
  user: { id: 1 },
  head: { ref: ID, repo },
  base: { ref: "main", repo },
  ...of,
});
const clue = {
  sessionId: ID,
  changeRequestId: null,
  number: 7,
  url: "https://host.example/octo/hello/pull/7",
};
const merge = (action: string, more: object = {}) => ({
  user: { id: 2 },
  object_attributes: {
    action,
    source_branch: ID,
    source_project_id: 3,
    target_project_id: 3,
    author_id: 1,
    iid: 7,
    ...more,
  },
});
const cloud = {
  actor: { uuid: "{2}" },
  pullrequest: {
    id: 7,
    author: { uuid: "{1}" },
    source: { branch: { name: ID }, repository: repo },
    destination: { branch: { name: "main" }, repository: repo },
  },
};
const center = {
  pullRequest: { id: 7, fromRef: { displayId: ID, repository: { id: 3 } }, toRef: { repository: { id: 3 } } },
};

// prettier-ignore
test.each<[string, EventHeaders, JsonValue]>([
  ["opened at GitHub", github("pull_request"), { action: "opened", sender: { id: 9 }, pull_request: pull() }],
  ["updated at GitHub", github("pull_request"), { action: "synchronize", sender: { id: 9 }, pull_request: pull() }],
  ["its reviewer asked by the account that opened it", github("pull_request"), { action: "review_requested", sender: { id: 1 }, pull_request: pull() }],
  ["updated at Gitea", { "x-gitea-event": "pull_request" }, { action: "synchronized", pull_request: pull() }],
  ["opened at GitLab", { "x-gitlab-event": "Merge Request Hook" }, merge("open")],
  ["updated by a push at GitLab", { "x-gitlab-event": "Merge Request Hook" }, merge("update", { oldrev: "1".repeat(40) })],
  ["opened at Bitbucket", { "x-event-key": "pullrequest:created" }, cloud],
  ["updated at Bitbucket Data Center", { "x-event-key": "pr:from_ref_updated" }, center],
  ["of a sender that names no event", {}, { action: "opened", pull_request: pull() }],
])("perhaps the service's pull request: %s", (_, headers, body) => {
  expect(suspicions(headers, body)).toMatchObject([{ reason: "own_request", request: { sessionId: ID, number: 7 } }]);
});

// prettier-ignore
test.each<[string, EventHeaders, JsonValue]>([
  ["merged at GitHub", github("pull_request"), { action: "closed", sender: { id: 1 }, pull_request: pull({ merged: true }) }],
  ["merged at GitLab", { "x-gitlab-event": "Merge Request Hook" }, merge("merge")],
  ["merged at GitLab by the account that opened it", { "x-gitlab-event": "Merge Request Hook" }, merge("merge", { author_id: 2 })],
  ["closed at GitLab by the account that opened it", { "x-gitlab-event": "Merge Request Hook" }, merge("close", { author_id: 2 })],
  ["merged at Bitbucket by the account that opened it", { "x-event-key": "pullrequest:fulfilled" }, { ...cloud, actor: { uuid: "{1}" } }],
  ["declined at Bitbucket by the account that opened it", { "x-event-key": "pullrequest:rejected" }, { ...cloud, actor: { uuid: "{1}" } }],
  ["merged at Bitbucket", { "x-event-key": "pullrequest:fulfilled" }, cloud],
  ["merged at Bitbucket Data Center", { "x-event-key": "pr:merged" }, center],
  ["labelled by a person", github("pull_request"), { action: "labeled", sender: { id: 9 }, pull_request: pull() }],
  ["labelled at a host that names no accounts", github("pull_request"), { action: "labeled", pull_request: pull({ user: null }) }],
  ["labelled at a host that names neither account nor opener", github("pull_request"), { action: "labeled", pull_request: pull({ user: undefined }) }],
  ["labelled at GitLab", { "x-gitlab-event": "Merge Request Hook" }, merge("update")],
  ["reviewed by a person", github("pull_request_review"), { action: "submitted", sender: { id: 9, type: "User" }, review: { body: "No." }, pull_request: pull() }],
  ["a person's comment", github("issue_comment"), { action: "created", sender: { id: 9, type: "User" }, comment: { body: "Why?" }, issue: { number: 7, user: { id: 1 }, pull_request: {} } }],
  ["its check", github("check_run"), { action: "completed", check_run: {} }],
])("never the service's own act: %s", (_, headers, body) => {
  expect(suspicions(headers, body)).toEqual([]);
});

// prettier-ignore
test.each<[string, EventHeaders, JsonValue]>([
  ["a check suite", github("check_suite"), { action: "completed", check_suite: { head_branch: ID } }],
  ["a check", github("check_run"), { action: "completed", check_run: { check_suite: { head_branch: ID } } }],
  ["a workflow", github("workflow_run"), { action: "requested", workflow_run: { head_branch: ID } }],
  ["a job", github("workflow_job"), { action: "queued", workflow_job: { head_branch: ID } }],
  ["a status of its commit alone", github("status"), { state: "success", branches: [{ name: ID }] }],
  ["a deployment", github("deployment_status"), { deployment: { ref: ID } }],
  ["a deployment of its whole ref", github("deployment"), { deployment: { ref: `refs/heads/${ID}` } }],
  ["a deployment of its commit", github("deployment"), { deployment: { ref: "a".repeat(40) }, workflow_run: { head_branch: ID } }],
  ["a pipeline at GitLab", { "x-gitlab-event": "Pipeline Hook" }, { object_attributes: { ref: ID } }],
  ["a pipeline of its merge request", { "x-gitlab-event": "Pipeline Hook" }, { object_attributes: { ref: "refs/merge-requests/7/head" }, merge_request: { source_branch: ID } }],
  ["a job at GitLab", { "x-gitlab-event": "Job Hook" }, { ref: ID }],
  ["a build at Bitbucket", { "x-event-key": "repo:commit_status_updated" }, { commit_status: { refname: ID } }],
])("follows a push to a session's branch: %s", (_, headers, body) => {
  expect(suspicions(headers, body)).toEqual([{ reason: "own_push", sessionIds: [ID] }]);
});

test("a status of a commit that another branch has, too, fires", () => {
  const body = { state: "failure", branches: [{ name: ID }, { name: "main" }] };
  expect(suspicions(github("status"), body)).toEqual([]);
});

test("a pull request of a fork is recognised by its text or number alone", () => {
  const fork = { full_name: "other/hello" };
  const body = {
    action: "opened",
    pull_request: pull({ head: { ref: ID, repo: fork }, body: `x\n<!-- change request ${ID} -->` }),
  };
  expect(suspicions(github("pull_request"), body)).toEqual([
    { reason: "own_request", request: { ...clue, sessionId: null, changeRequestId: ID } },
  ]);
  const none = { action: "opened", pull_request: pull({ head: { ref: "x", repo: null }, number: 2 ** 40 }) };
  expect(suspicions(github("pull_request"), none)).toMatchObject([
    { request: { sessionId: null, number: null } },
  ]);
});

test("a comment is the service's by its mark, or by the app that opened the pull request", () => {
  const marked = { action: "created", comment: { body: `Done. <!-- change request ${ID} -->` } };
  for (const event of ["issue_comment", "pull_request_review_comment", "commit_comment"])
    expect(suspicions(github(event), marked)).toMatchObject([
      { reason: "own_comment", request: { changeRequestId: ID } },
    ]);
  const note = { object_attributes: { note: `<!-- change request ${ID} -->` } };
  expect(suspicions({ "x-gitlab-event": "Note Hook" }, note)).toMatchObject([{ reason: "own_comment" }]);
  const issue = { number: 7, html_url: clue.url, user: { id: 1 }, pull_request: { url: "" } };
  const byApp = { action: "created", sender: { id: 1, type: "Bot" }, comment: { body: "Looked." }, issue };
  expect(suspicions(github("issue_comment"), byApp)).toEqual([
    { reason: "own_comment", request: { ...clue, sessionId: null } },
  ]);
  const byOther = { ...byApp, sender: { id: 2, type: "Bot" } };
  expect(suspicions(github("issue_comment"), byOther)).toEqual([]);
});
