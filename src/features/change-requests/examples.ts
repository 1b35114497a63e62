/** Examples of the operations on change requests, and of those that propose a trigger. */
import type { Examples } from "../../http/api/examples/example.ts";
import { COMMIT, comparison, DIFF, LATER, SESSION, USER } from "../../http/api/examples/records.ts";

const TITLE = "Fix the checkout of empty carts";

/** A trigger that a person describes. */
const wish = {
  type: "cron",
  slug: "nightly",
  cron: "0 30 2 * * *",
  prompt: "Update the dependencies.",
};
const ofTrigger = { session_id: null };
const mergeFields = { status: "merged", merged_commit: COMMIT, merged_at: LATER, merged_by: USER };

export const CHANGE_REQUEST_EXAMPLES: Examples = {
  nouns: {
    changerequest: { number: 7, head_ref: SESSION, title: TITLE, description: "", status: "open" },
    remark: {
      body: "Does an empty cart keep its coupon?",
      place: { side: "head", first_line: 12, last_line: 14 },
      created_by: {},
      created_at: LATER,
    },
  },
  operations: {
    "triggerWishes.draft": {
      summary: "Write a new trigger as lines of platform.toml, and check it. Nothing changes.",
      request: wish,
      response: {
        lines:
          '[[triggers]]\nslug = "nightly"\ntype = "cron"\ncron = "0 30 2 * * *"\nprompt = "Update the dependencies."\n',
        issues: [],
      },
    },
    "triggerWishes.act": {
      summary: "Open a change request that pauses, resumes or deletes a trigger in platform.toml.",
      request: { action: "pause", merge: true },
      response: {
        ...mergeFields,
        ...ofTrigger,
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
        ...ofTrigger,
        head_ref: "add-trigger-nightly-0c5f6d21",
        title: "Add the trigger nightly",
        description: "Adds the cron trigger `nightly` to `platform.toml`.",
      },
    },
    "changeRequests.open": {
      summary: "Open a change request for a session's branch, or for another branch.",
      request: { session_id: SESSION, title: TITLE },
    },
    "changeRequests.list": {
      summary: "List a project's change requests, newest first.",
      response: { change_requests: [{ review_asked: {} }] },
    },
    "changeRequests.listAll": {
      summary: "List the change requests of all projects that the caller reads, newest first.",
      response: { change_requests: [{ review_asked: {} }] },
    },
    "changeRequests.get": {
      summary: "Show a change request with its commits, its files, and whether it can be merged.",
      response: {
        mergeable: true,
        warnings: [{ file: "platform.toml", line: 3, message: "triggers[0].cron: cron is missing." }],
        verdicts: [{ kind: "approval", why_not: "who opens a request does not approve it" }],
        approvals_required: 0,
        ...comparison,
      },
    },
    "changeRequests.diff": { summary: "Show the diff of a change request as text.", response: DIFF },
    "changeRequests.merge": {
      summary: "Merge a change request into the default branch.",
      request: { message: TITLE },
      response: mergeFields,
    },
    "changeRequests.close": {
      summary: "Close a change request without merging it.",
      response: { status: "closed", updated_at: LATER },
    },
    "changeRequests.edit": {
      summary: "Change a change request's title or description.",
      request: { title: TITLE },
      response: { updated_at: LATER },
    },
    "changeRequests.askReviewer": "Ask a member of the project to review a change request, or ask her again.",
    "changeRequests.withdrawReviewer": "Take back that a person was asked for a review.",
    "reviews.list": "List what people say of a change request, the oldest first.",
    "reviews.add": {
      summary: "Comment on a change request or on lines of it, approve it, or ask for changes.",
      request: { body: "Does an empty cart keep its coupon?", commit: COMMIT, place: {} },
    },
    "reviews.edit": {
      summary: "Change the text of your remark, or resolve a remark.",
      request: { resolved: true },
      response: { resolved_by: USER, resolved_at: LATER },
    },
    "reviews.remove": "Delete your remark, with its answers.",
  },
};
