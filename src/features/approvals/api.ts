import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api";
import { page } from "../../http/api/endpoints.ts";
import { APPROVAL_STATES, REASON_LIMIT } from "./rules/approval.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { BadRequest, Conflict, NotFound } from "../../http/api/errors.ts";
import { Instant, pageQuery, projectParams, text, Uuid } from "../../http/api/schemas.ts";

const nullable = Schema.NullOr;

export const ApprovalWire = Schema.Struct({
  /** The id of the call, too. */
  id: Uuid,
  session_id: Uuid,
  /** The session acts for this user. */
  user_id: Uuid,
  started_by: Schema.Literals(["user", "trigger"]),
  connector: Schema.String,
  tool: Schema.String,
  origin: Schema.String,
  status: Schema.Literals(APPROVAL_STATES),
  arguments: nullable(Schema.Record(Schema.String, Schema.Unknown)).annotate({
    description:
      "All arguments. Secrets of the project, and values of fields that look like secrets, are masked. Null once the call is settled.",
  }),
  arguments_digest: Schema.String,
  /** Why it is denied, refused or unknown. */
  reason: nullable(Schema.String),
  asked_at: Instant,
  expires_at: Instant,
  decided_by: nullable(Uuid),
  decided_at: nullable(Instant),
  /** The outcome in the record of calls. */
  outcome: nullable(Schema.Literals(["ok", "error", "denied", "pending", "unknown"])),
  /** When the agent got the result. */
  delivered_at: nullable(Instant),
}).annotate({ identifier: "Approval" });

const ApprovalPage = page({ approvals: Schema.Array(ApprovalWire) });

const approvalParams = { ...projectParams, id: Uuid };

/** Calls of agents that wait for a person. Only people see and decide them. */
export class ApprovalsGroup extends HttpApiGroup.make("approvals")
  .add(
    HttpApiEndpoint.get("list", "/approvals", {
      params: projectParams,
      query: {
        ...pageQuery,
        session_id: Schema.optionalKey(Uuid),
        status: Schema.optionalKey(Schema.Literals(APPROVAL_STATES)),
        hidden: Schema.optionalKey(Schema.Literals(["show"])).annotate({
          description:
            "Shows the values of fields that look like secrets. Secrets of the project stay masked.",
        }),
      },
      success: ApprovalPage,
      error: NotFound,
    }).annotate(RequiredPrivilege, "approve_call"),
    HttpApiEndpoint.post("approve", "/approvals/:id/approve", {
      params: approvalParams,
      success: ApprovalWire,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "approve_call"),
    HttpApiEndpoint.post("deny", "/approvals/:id/deny", {
      params: approvalParams,
      payload: Schema.Struct({
        reason: Schema.optionalKey(text(REASON_LIMIT)).annotate({ description: "The agent reads it." }),
      }),
      success: ApprovalWire,
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "approve_call"),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid") {}
