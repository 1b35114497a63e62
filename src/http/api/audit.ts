import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api";
import { page } from "./endpoints.ts";
import { ACTOR_KINDS, AUDIT_ACTIONS, AUDIT_OUTCOMES } from "../../domain/person/audit.ts";
import { RequiredPrivilege, Authorized } from "./access.ts";
import { BadRequest, NotFound } from "./errors.ts";
import { Instant, Moment, pageQuery, projectParams, Uuid } from "./schemas.ts";

const nullable = Schema.NullOr;

const ActorWire = Schema.Struct({
  kind: Schema.Literals(ACTOR_KINDS),
  id: nullable(Uuid).annotate({ description: "The person, or the session of an agent." }),
  name: nullable(Schema.String),
  token_id: nullable(Uuid).annotate({ description: "The token, or the signed-in browser." }),
});

export const AuditEventWire = Schema.Struct({
  id: Uuid,
  at: Instant,
  project_id: nullable(Uuid),
  actor: ActorWire,
  action: Schema.Literals(AUDIT_ACTIONS),
  target: nullable(Schema.String).annotate({ description: "The id or the name of what changed." }),
  outcome: Schema.Literals(AUDIT_OUTCOMES),
  address: nullable(Schema.String).annotate({
    description: "Of the connection. Behind a proxy, it is the proxy's.",
  }),
  user_agent: nullable(Schema.String),
  request_id: nullable(Schema.String),
  changes: Schema.Record(Schema.String, Schema.Unknown).annotate({
    description: "New values of what changed. Never a secret.",
  }),
}).annotate({ identifier: "AuditEvent" });

const AuditPage = page({ events: Schema.Array(AuditEventWire) });

export const filters = {
  ...pageQuery,
  actor: Schema.optionalKey(Uuid),
  action: Schema.optionalKey(Schema.Literals(AUDIT_ACTIONS)),
  since: Schema.optionalKey(Moment),
  until: Schema.optionalKey(Moment),
};

/** Who did what: for the account's owners, and for a project's owners the part about their project. */
export class AuditGroup extends HttpApiGroup.make("audit")
  .add(
    HttpApiEndpoint.get("list", "/audit", {
      query: { ...filters, project: Schema.optionalKey(Uuid) },
      success: AuditPage,
      error: BadRequest,
    }).annotate(RequiredPrivilege, "govern_account"),
    HttpApiEndpoint.get("listOfProject", "/projects/:pid/audit", {
      params: projectParams,
      query: filters,
      success: AuditPage,
      error: [BadRequest, NotFound],
    }).annotate(RequiredPrivilege, "govern_project"),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
