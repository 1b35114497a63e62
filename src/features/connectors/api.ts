import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { page, show } from "../../http/api/endpoints.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { BadGateway, BadRequest, Conflict, Forbidden, NotFound } from "../../http/api/errors.ts";
import { Instant, pageQuery, projectParams, Uuid } from "../../http/api/schemas.ts";

const nullable = Schema.NullOr;
const texts = Schema.Array(Schema.String);
const policy = Schema.Literals(["allow", "ask", "deny"]);
const sessionKind = Schema.Literals(["user", "trigger"]);

const LeftOut = {
  left_out: Schema.Array(Schema.Struct({ name: Schema.String, why: Schema.String })).annotate({
    description: "Tools that no agent gets, and why: the first 100.",
  }),
  left_out_total: Schema.Finite.annotate({ description: "How many tools no agent gets." }),
};

const ConnectorWire = Schema.Struct({
  slug: Schema.String,
  kind: Schema.Literals(["mcp", "openapi", "http"]),
  url: Schema.String,
  auth: Schema.Literals(["none", "bearer", "basic", "header", "query", "oauth", "client_credentials"]),
  /** The header or the parameter. */
  auth_name: nullable(Schema.String),
  credential_of: Schema.Literals(["project", "user"]).annotate({
    description:
      "Whose credential a call has. `user`: that of the session's person. State, credential and sign-in are then the caller's own.",
  }),
  sessions: Schema.Array(sessionKind),
  direct: texts,
  state: Schema.Literals([
    "ready",
    "needs_credential",
    "needs_refresh",
    "needs_acceptance",
    "failed",
  ]).annotate({
    description:
      "`needs_credential`: none is stored for this origin, or no person is signed in there any more. `needs_refresh`: the tools were never fetched. `needs_acceptance`: there are tools that no person accepted. `failed`: the last refresh failed; accepted tools stay usable.",
  }),
  credential: nullable(
    Schema.Struct({ origin: Schema.String, updated_at: Instant, updated_by: nullable(Uuid) }),
  ),
  /** For the auth kinds `oauth` and `client_credentials`. Null if no grant exists for this origin. */
  sign_in: nullable(
    Schema.Struct({
      status: Schema.Literals(["signed_in", "ended"]),
      /** The sign-in server. Null until it was asked. */
      issuer: nullable(Schema.String),
      at: Instant,
      by: nullable(Uuid),
      renewed_at: nullable(Instant),
      /** When the present access token ends. */
      expires_at: nullable(Instant),
      /** Why it has ended, or why the last renewal failed. */
      failure: nullable(Schema.String),
    }),
  ),
  /** Accepted tools that the server still has, and tools that were added or changed since. */
  usable: Schema.Finite,
  to_accept: Schema.Finite,
  ...LeftOut,
  failure: nullable(Schema.String),
  refreshed_at: nullable(Instant),
}).annotate({ identifier: "Connector" });

const ErrorWire = Schema.Struct({
  path: nullable(Schema.String),
  message: Schema.String,
  line: nullable(Schema.Finite),
});

const Listing = Schema.Struct({
  connectors: Schema.Array(ConnectorWire),
  default_policy: policy,
  errors: Schema.Array(ErrorWire),
});

const Shape = Schema.Struct({
  description: Schema.String,
  input_schema: Schema.Record(Schema.String, Schema.Unknown),
  /** Of an HTTP API: the method and the path of the request, as in `GET /issues/{id}`. */
  request: nullable(Schema.String),
});

const CatalogueWire = Schema.Struct({
  slug: Schema.String,
  /** Names what is accepted. Null if the tools were never fetched. */
  pin: nullable(Schema.String),
  refreshed_at: nullable(Instant),
  accepted_at: nullable(Instant),
  accepted_by: nullable(Uuid),
  failure: nullable(Schema.String),
  removed: texts,
  tools: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      /** The name that agents see. */
      shown: Schema.String,
      ...Shape.fields,
      policy,
      rule: Schema.String,
      state: Schema.Literals(["accepted", "new", "changed"]),
      /** The accepted form, if it differs. */
      accepted: nullable(Shape),
    }),
  ),
  ...LeftOut,
}).annotate({ identifier: "Catalogue" });

export const CallWire = Schema.Struct({
  id: Uuid,
  session_id: Uuid,
  user_id: Uuid,
  started_by: sessionKind,
  connector: Schema.String,
  tool: Schema.String,
  origin: Schema.String,
  pin: nullable(Schema.String),
  rule: nullable(Schema.String),
  arguments_digest: Schema.String,
  arguments_bytes: Schema.Finite,
  arguments_preview: Schema.String,
  at: Instant,
  /** When an approved call was sent. Null if it was sent at the instant `at`, or not at all. */
  begun_at: nullable(Instant),
  /** The person who approved or denied it. */
  approver: nullable(Uuid),
  ended_at: nullable(Instant),
  /** Null while the call is being performed. */
  outcome: nullable(Schema.Literals(["ok", "error", "denied", "pending", "unknown"])),
  message: nullable(Schema.String),
  upstream_status: nullable(Schema.Finite),
  result_bytes: nullable(Schema.Finite),
}).annotate({ identifier: "ExecutorCall" });

const CallPage = page({ calls: Schema.Array(CallWire) });

const slugParams = { ...projectParams, slug: Schema.String };

const CatalogueAction = Schema.Union([
  Schema.Struct({ action: Schema.Literal("refresh") }),
  Schema.Struct({ action: Schema.Literal("accept"), pin: Schema.String.check(Schema.isMaxLength(64)) }),
]);

/** Connectors of a project: what is connected, what needs a person, and what agents called. */
export class ConnectorsGroup extends HttpApiGroup.make("connectors")
  .add(
    show("list", "/connectors", { params: projectParams, success: Listing, privilege: "read_project" }),
    HttpApiEndpoint.put("putCredential", "/connectors/:slug/credential", {
      params: slugParams,
      payload: Schema.Struct({
        value: Schema.String,
        client_id: Schema.optionalKey(Schema.String).annotate({
          description:
            "Of a client with auth `oauth` or `client_credentials`, whose secret is `value`. Default: as the manifest says.",
        }),
      }),
      success: ConnectorWire,
      error: [BadRequest, Forbidden, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "use_own_credential"),
    HttpApiEndpoint.post("authorize", "/connectors/:slug/authorize", {
      params: slugParams,
      success: Schema.Struct({
        url: Schema.String.annotate({
          description: "A page of this service, for the person who asked. It works once.",
        }),
        expires_at: Instant,
      }),
      error: [BadRequest, Forbidden, NotFound, Conflict, BadGateway],
    }).annotate(RequiredPrivilege, "use_own_credential"),
    HttpApiEndpoint.delete("deleteCredential", "/connectors/:slug/credential", {
      params: slugParams,
      success: HttpApiSchema.NoContent,
      error: [BadRequest, Forbidden, NotFound],
    }).annotate(RequiredPrivilege, "use_own_credential"),
    HttpApiEndpoint.get("catalogue", "/connectors/:slug/catalogue", {
      params: slugParams,
      success: CatalogueWire,
      error: [BadRequest, NotFound],
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.post("changeCatalogue", "/connectors/:slug/catalogue", {
      params: slugParams,
      payload: CatalogueAction,
      success: CatalogueWire,
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_project"),
    HttpApiEndpoint.get("calls", "/executor/calls", {
      params: projectParams,
      query: {
        ...pageQuery,
        session_id: Schema.optionalKey(Uuid),
        connector: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(20))),
      },
      success: CallPage,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid") {}
