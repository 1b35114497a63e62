/** Examples of the operations on change requests, and of those that propose a trigger. */
import type { Examples } from "../../http/api/examples/example.ts";
import {
  BASE_COMMIT,
  BEGAN,
  COMMIT,
  LATER,
  PROJECT,
  SESSION,
  USER,
} from "../../http/api/examples/records.ts";

/** A trigger that a person describes. */
const wish = {
  type: "cron",
  slug: "nightly",
  cron: "0 30 2 * * *",
  prompt: "Update the dependencies.",
};

const changeRequest = {
  id: "019a7c44-6b55-7c2d-95a1-a0b1c2d3e408",
  project_id: PROJECT,
  number: 7,
  session_id: SESSION,
  head_ref: SESSION,
  base_ref: "main",
  title: "Fix the checkout of empty carts",
  description: "",
  status: "open",
  created_by: USER,
  created_at: BEGAN,
  updated_at: BEGAN,
  merged_commit: null,
  merged_at: null,
  merged_by: null,
  pull_request: null,
};

const listed = { ...changeRequest, review_asked: { by: { id: USER, name: "Mia" }, at: LATER } };

const merged = {
  ...changeRequest,
  status: "merged",
  merged_commit: COMMIT,
  merged_at: LATER,
  merged_by: USER,
};

const remark = {
  id: "019a7c44-7c66-7d3e-a6b2-b1c2d3e4f509",
  kind: "comment",
  body: "Does an empty cart keep its coupon?",
  commit: COMMIT,
  outdated: false,
  place: { file: "src/cart.ts", side: "head", first_line: 12, last_line: 14 },
  reply_to: null,
  created_by: { id: USER, name: "Mia" },
  created_at: LATER,
  edited_at: null,
  resolved_by: null,
  resolved_at: null,
};

const reviewer = { id: USER, name: "Mia", asked_by: USER, asked_at: LATER, answer: null };

export const CHANGE_REQUEST_EXAMPLES: Examples = {
  "triggerWishes.draft": {
    summary: "Write a new trigger as lines of platform.toml, and check it. Nothing changes.",
    request: wish,
    response: {
      lines:
        '[[triggers]]\nslug = "nightly"\ntype = "cron"\ncron = "0 30 2 * * *"\nprompt = "Update the dependencies."\n',
      upcoming: [LATER],
      webhook_url: null,
      issues: [],
    },
  },
  "triggerWishes.act": {
    summary: "Open a change request that pauses, resumes or deletes a trigger in platform.toml.",
    request: { action: "pause", merge: true },
    response: {
      ...merged,
      session_id: null,
      head_ref: "pause-trigger-nightly-0c5f6d21",
      title: "Pause the trigger nightly",
      description:
        "Pauses the trigger `nightly` in `platform.toml`. Its schedule and its webhook start no sessions. Firing by hand works.",
    },
  },
  "triggerWishes.propose": {
    summary: "Open a change request that adds a trigger to platform.toml, or changes one.",
    request: wish,
    response: {
      ...changeRequest,
      session_id: null,
      head_ref: "add-trigger-nightly-0c5f6d21",
      title: "Add the trigger nightly",
      description: "Adds the cron trigger `nightly` to `platform.toml`.",
    },
  },
  "changeRequests.open": {
    summary: "Open a change request for a session's branch, or for another branch.",
    request: { session_id: SESSION, title: changeRequest.title },
    response: changeRequest,
  },
  "changeRequests.list": {
    summary: "List a project's change requests, newest first.",
    response: { change_requests: [listed], next_cursor: null },
  },
  "changeRequests.listAll": {
    summary: "List the change requests of all projects that the caller reads, newest first.",
    response: { change_requests: [listed], next_cursor: null },
  },
  "changeRequests.get": {
    summary: "Show a change request with its commits, its files, and whether it can be merged.",
    response: {
      ...changeRequest,
      base_commit: BASE_COMMIT,
      head_commit: COMMIT,
      mergeable: true,
      conflicts: [],
      warnings: [{ file: "platform.toml", line: 3, message: "triggers[0].cron: cron is missing." }],
      verdicts: [
        {
          kind: "approval",
          by: { id: USER, name: "Mia" },
          at: LATER,
          commit: COMMIT,
          counts: false,
          why_not: "who opens a request does not approve it",
        },
      ],
      reviewers: [reviewer],
      approvals_required: 0,
      commits_total: 1,
      commits: [{ sha: COMMIT, subject: "Refuse an empty cart", author_name: "agent", committed_at: LATER }],
      files_changed_total: 1,
      files_changed: [{ path: "src/checkout.ts", additions: 4, deletions: 1 }],
    },
  },
  "changeRequests.diff": {
    summary: "Show the diff of a change request as text.",
    response:
      "diff --git a/src/checkout.ts b/src/checkout.ts\n--- a/src/checkout.ts\n+++ b/src/checkout.ts\n@@ -1 +1,2 @@\n",
  },
  "changeRequests.merge": {
    summary: "Merge a change request into the default branch.",
    request: { message: "Fix the checkout of empty carts" },
    response: merged,
  },
  "changeRequests.close": {
    summary: "Close a change request without merging it.",
    response: { ...changeRequest, status: "closed", updated_at: LATER },
  },
  "changeRequests.edit": {
    summary: "Change a change request's title or description.",
    request: { title: "Fix the checkout of empty carts" },
    response: { ...changeRequest, updated_at: LATER },
  },
  "changeRequests.askReviewer": {
    summary: "Ask a member of the project to review a change request, or ask her again.",
    response: reviewer,
  },
  "changeRequests.withdrawReviewer": { summary: "Take back that a person was asked for a review." },
  "reviews.list": {
    summary: "List what people say of a change request, the oldest first.",
    response: { remarks: [remark], next_cursor: null },
  },
  "reviews.add": {
    summary: "Comment on a change request or on lines of it, approve it, or ask for changes.",
    request: { body: remark.body, commit: COMMIT, place: remark.place },
    response: remark,
  },
  "reviews.edit": {
    summary: "Change the text of your remark, or resolve a remark.",
    request: { resolved: true },
    response: { ...remark, resolved_by: USER, resolved_at: LATER },
  },
  "reviews.remove": { summary: "Delete your remark, with its answers." },
};
