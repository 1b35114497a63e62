import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { listAll, page, remove } from "./endpoints.ts";
import { ACCOUNT_ROLES } from "../../domain/person/role.ts";
import { TERMINAL_USERS } from "../../domain/session/terminal.ts";
import { RequiredPrivilege, Authorized } from "./access.ts";
import { Conflict, NotFound } from "./errors.ts";
import { Instant, nameText, Uuid } from "./schemas.ts";

const Origin = Schema.Literals(["user", "session", "trigger"]);

export const Me = Schema.Struct({
  user: Schema.Struct({ id: Uuid, name: Schema.String, role: Schema.Literals(ACCOUNT_ROLES) }),
  account: Schema.Struct({
    id: Uuid,
    name: Schema.String,
    tier: Schema.String,
    session_cap: Schema.Finite,
    active_sessions: Schema.Finite,
    queued_fires: Schema.Finite,
    operator: Schema.Boolean.annotate({ description: "Whether this token may see the service itself." }),
  }),
  token: Schema.Struct({
    id: Uuid.annotate({
      description: "In a browser: the token that signed it in, or its own session if a provider did.",
    }),
    origin: Origin,
    project_id: Schema.NullOr(Uuid),
  }),
  terminals: Schema.Literals(TERMINAL_USERS).annotate({
    description: "Who may open terminals in a project's sandboxes (`PLATFORM_TERMINALS`).",
  }),
  paused: Schema.Boolean.annotate({
    description:
      "Whether the installation is a restored copy whose pause has not ended: no schedule, no queue, no webhook, no push to another server.",
  }),
});

export const TokenWire = Schema.Struct({
  id: Uuid,
  name: Schema.String,
  origin: Origin,
  user_id: Uuid,
  project_id: Schema.NullOr(Uuid),
  created_at: Instant,
  expires_at: Schema.NullOr(Instant),
  last_used_at: Schema.NullOr(Instant),
}).annotate({ identifier: "Token" });

export const BrowserWire = Schema.Struct({
  id: Uuid,
  signed_in_by: Schema.Literals(["token", "oidc", "github"]),
  token_id: Schema.NullOr(Uuid).annotate({
    description: "The access token that signed the browser in. The session ends with it.",
  }),
  created_at: Instant,
  last_used_at: Instant,
  expires_at: Instant.annotate({ description: "Moves while the session is used." }),
  address: Schema.NullOr(Schema.String),
  user_agent: Schema.NullOr(Schema.String),
  current: Schema.Boolean.annotate({ description: "Whether this browser sends the request." }),
}).annotate({ identifier: "Browser" });

export const IdentityWire = Schema.Struct({
  id: Uuid,
  provider: Schema.NullOr(Schema.Literals(["oidc", "github"])).annotate({
    description: "Where it signs in. Null: its provider is not set up any more.",
  }),
  issuer: Schema.String,
  subject: Schema.String.annotate({
    description: "What the issuer calls the person. GitHub: the numeric id.",
  }),
  name: Schema.String.annotate({ description: "As the provider shows it. It is never compared." }),
  created_at: Instant,
  last_sign_in_at: Schema.NullOr(Instant),
}).annotate({ identifier: "Identity" });

const CreateToken = Schema.Struct({
  name: nameText(200),
  project_id: Schema.optionalKey(Uuid),
  expires_at: Schema.optionalKey(Instant),
});

/** The caller's identity, and the account's tokens (api.md 2). */
export class IdentityGroup extends HttpApiGroup.make("identity")
  .add(
    HttpApiEndpoint.get("me", "/me", { success: Me }).annotate(RequiredPrivilege, "know_itself"),
    listAll("listTokens", "/tokens", {
      success: page({ tokens: Schema.Array(TokenWire) }),
      privilege: "manage_own_access",
    }),
    HttpApiEndpoint.post("createToken", "/tokens", {
      payload: CreateToken,
      success: Schema.Struct({ ...TokenWire.fields, token: Schema.String }).pipe(HttpApiSchema.status(201)),
      error: NotFound,
    }).annotate(RequiredPrivilege, "manage_own_access"),
    remove("deleteToken", "/tokens/:id", { params: { id: Uuid }, privilege: "manage_own_access" }),
  )
  .add(
    listAll("listBrowsers", "/me/browsers", {
      success: page({ browsers: Schema.Array(BrowserWire) }),
      privilege: "manage_own_access",
    }),
    HttpApiEndpoint.delete("endBrowsers", "/me/browsers", { success: HttpApiSchema.NoContent }).annotate(
      RequiredPrivilege,
      "manage_own_access",
    ),
    remove("endBrowser", "/me/browsers/:id", { params: { id: Uuid }, privilege: "manage_own_access" }),
  )
  .add(
    HttpApiEndpoint.get("listIdentities", "/me/identities", {
      success: Schema.Struct({ identities: Schema.Array(IdentityWire) }),
    }).annotate(RequiredPrivilege, "manage_own_access"),
    HttpApiEndpoint.delete("removeIdentity", "/me/identities/:id", {
      params: { id: Uuid },
      success: HttpApiSchema.NoContent,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "manage_own_access"),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
