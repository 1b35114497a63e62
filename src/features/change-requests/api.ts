import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { page } from "../../http/api/endpoints.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { BadRequest, Conflict, Forbidden, NotFound, Unprocessable } from "../../http/api/errors.ts";
import {
  comparisonFields,
  diffQuery,
  Instant,
  numberParams,
  optionalText,
  pageQuery,
  projectParams,
  nameText,
  text,
  Uuid,
} from "../../http/api/schemas.ts";
import { Person, ReviewerWire, VerdictWire } from "./review-api.ts";

const nullable = Schema.NullOr;

export const ChangeRequestSummary = Schema.Struct({
  id: Uuid,
  project_id: Uuid,
  number: Schema.Finite,
  session_id: nullable(Uuid),
  head_ref: Schema.String,
  base_ref: Schema.String,
  title: Schema.String,
  description: Schema.String,
  status: Schema.Literals(["open", "merged", "closed"]),
  created_by: nullable(Uuid),
  created_at: Instant,
  updated_at: Instant,
  /** The base branch's commit that contains the work: the head itself if the merge was a fast-forward. */
  merged_commit: nullable(Schema.String),
  merged_at: nullable(Instant),
  /** Null if it was merged at the code host. */
  merged_by: nullable(Uuid),
  /** Its pull request at the code host, if the project's repository uses pull requests. */
  pull_request: nullable(
    Schema.Struct({
      number: Schema.Finite,
      url: Schema.String,
      status: Schema.Literals(["open", "merged", "closed"]),
    }),
  ),
}).annotate({ identifier: "ChangeRequest" });

/** A request in a list. */
export const ListedChangeRequest = Schema.Struct({
  ...ChangeRequestSummary.fields,
  review_asked: nullable(Schema.Struct({ by: Person, at: Instant })).annotate({
    description:
      "Who asked the caller for a review that she still owes. Null: she was not asked, or has said something since, or the request has ended.",
  }),
}).annotate({ identifier: "ListedChangeRequest" });

export const listQuery = {
  ...pageQuery,
  status: Schema.optionalKey(ChangeRequestSummary.fields.status),
  session_id: Schema.optionalKey(Uuid).annotate({
    description: "Only requests that propose the work of this session.",
  }),
  reviewer: Schema.optionalKey(Schema.Literal("me")).annotate({
    description: "`me`: only requests of which the caller owes a review.",
  }),
};
const ChangeRequestPage = page({ change_requests: Schema.Array(ListedChangeRequest) });

export const Detail = Schema.Struct({
  ...ChangeRequestSummary.fields,
  base_commit: Schema.String,
  head_commit: Schema.String,
  mergeable: Schema.Boolean,
  conflicts: Schema.Array(Schema.String),
  /** Mistakes that a merge would bring, at most 20. They do not prevent it. Empty once the request has ended. */
  warnings: Schema.Array(
    Schema.Struct({
      file: Schema.String,
      /** From 1. Null for the whole file, and if it is not known. */
      line: nullable(Schema.Finite),
      message: Schema.String,
    }),
  ),
  /** Each person's newest one, the oldest first. */
  verdicts: Schema.Array(VerdictWire),
  /** Who was asked to review it, in the order in which they were asked. */
  reviewers: Schema.Array(ReviewerWire),
  /** The project's number of verdicts that a merge needs. */
  approvals_required: Schema.Finite,
  ...comparisonFields,
}).annotate({ identifier: "ChangeRequestDetail" });

/** Exactly one of the two names the proposed branch. */
export const OpenRequest = Schema.Struct({
  session_id: Schema.optionalKey(Uuid),
  head_ref: Schema.optionalKey(Schema.String),
  title: nameText(300),
  description: Schema.optionalKey(optionalText(64 * 1024)),
});

/** Each of the two may be absent. */
export const EditRequest = Schema.Struct({
  title: Schema.optionalKey(nameText(300)),
  description: Schema.optionalKey(optionalText(64 * 1024)),
});

export const MergeRequest = Schema.Struct({
  message: Schema.optionalKey(text(64 * 1024)).annotate({
    description: "The message of the merge commit, if one is needed, or of the squash commit.",
  }),
  squash: Schema.optionalKey(Schema.Boolean).annotate({
    description:
      "The base branch gets one commit with all changes, in place of the work's own commits. Default: false.",
  }),
});

/** Change requests: they show, propose and merge work (api.md 6). */
export class ChangeRequestsGroup extends HttpApiGroup.make("changeRequests")
  .add(
    HttpApiEndpoint.post("open", "/", {
      params: projectParams,
      payload: OpenRequest,
      success: ChangeRequestSummary.pipe(HttpApiSchema.status(201)),
      error: [BadRequest, Forbidden, NotFound, Conflict, Unprocessable],
    }).annotate(RequiredPrivilege, "open_change_request"),
    HttpApiEndpoint.get("list", "/", {
      params: projectParams,
      query: listQuery,
      success: ChangeRequestPage,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("get", "/:number", {
      params: numberParams,
      success: Detail,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("diff", "/:number/diff", {
      params: numberParams,
      query: diffQuery,
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; charset=utf-8" })),
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.patch("edit", "/:number", {
      params: numberParams,
      payload: EditRequest,
      success: ChangeRequestSummary,
      error: [BadRequest, NotFound],
    }).annotate(RequiredPrivilege, "edit_change_request"),
    // Only for people: a person reviews an agent's work before it reaches the default branch (api.md 1).
    HttpApiEndpoint.post("merge", "/:number/merge", {
      params: numberParams,
      payload: MergeRequest,
      success: ChangeRequestSummary,
      error: [BadRequest, NotFound, Conflict, Unprocessable],
    }).annotate(RequiredPrivilege, "merge_change_request"),
    // Also for a session's token, which may propose and change, but neither review, talk, nor merge. Not for a trigger's token:
    // it may open and update its own request (api.md 1), but closing one would take it away from its reviewer.
    HttpApiEndpoint.post("close", "/:number/close", {
      params: numberParams,
      success: ChangeRequestSummary,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "close_change_request"),
    // Again for one who was asked before: she is told once more.
    HttpApiEndpoint.put("askReviewer", "/:number/reviewers/:id", {
      params: { ...numberParams, id: Uuid },
      success: ReviewerWire,
      error: [NotFound, Conflict, Unprocessable],
    }).annotate(RequiredPrivilege, "review_change_request"),
    HttpApiEndpoint.delete("withdrawReviewer", "/:number/reviewers/:id", {
      params: { ...numberParams, id: Uuid },
      success: HttpApiSchema.NoContent,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "review_change_request"),
  )
  .prefix("/v1/projects/:pid/change-requests")
  .add(
    HttpApiEndpoint.get("listAll", "/v1/change-requests", {
      query: listQuery,
      success: ChangeRequestPage,
    }).annotate(RequiredPrivilege, "read_project"),
  )
  .middleware(Authorized) {}
