import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { listAll, page, remove, show } from "./endpoints.ts";
import { ACCOUNT_ROLES, PROJECT_ROLES } from "../../domain/person/role.ts";
import { RequiredPrivilege, Authorized } from "./access.ts";
import { Conflict, NotFound, Unprocessable } from "./errors.ts";
import { distinctBy, Instant, projectParams, nameText, Uuid } from "./schemas.ts";

const AccountRoleWire = Schema.Literals(ACCOUNT_ROLES);
const ProjectRoleWire = Schema.Literals(PROJECT_ROLES);

/** A person's name, in characters. */
export const NAME_MAX = 100;
/** How many projects an invitation can name. */
const GRANTS_MAX = 100;

export const PersonWire = Schema.Struct({
  id: Uuid,
  name: Schema.String,
  role: AccountRoleWire,
  created_at: Instant,
  deactivated_at: Schema.NullOr(Instant),
}).annotate({ identifier: "Person" });

const GrantWire = Schema.Struct({ project_id: Uuid, role: ProjectRoleWire });

export const InvitationWire = Schema.Struct({
  id: Uuid,
  name: Schema.String,
  role: AccountRoleWire,
  projects: Schema.Array(GrantWire),
  created_by: Uuid,
  created_at: Instant,
  expires_at: Instant,
}).annotate({ identifier: "Invitation" });

const MemberWire = Schema.Struct({
  user: PersonWire,
  role: ProjectRoleWire.annotate({ description: "The highest of the person's grants." }),
  own_role: Schema.NullOr(ProjectRoleWire).annotate({
    description:
      "The person's own grant. Null: the role follows from the account or from the project's default.",
  }),
}).annotate({ identifier: "Member" });

const id = { id: Uuid };
const member = { ...projectParams, id: Uuid };

/** People, invitations, and roles in projects (api.md 2). */
export class PeopleGroup extends HttpApiGroup.make("people")
  .add(
    listAll("list", "/people", {
      success: page({ people: Schema.Array(PersonWire) }),
      privilege: "see_people",
    }),
    HttpApiEndpoint.patch("update", "/people/:id", {
      params: id,
      payload: Schema.Struct({
        name: Schema.optionalKey(nameText(NAME_MAX)),
        role: Schema.optionalKey(AccountRoleWire),
      }),
      success: PersonWire,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_account"),
    HttpApiEndpoint.patch("updateAccount", "/account", {
      payload: Schema.Struct({ name: nameText(NAME_MAX) }),
      success: HttpApiSchema.NoContent,
    }).annotate(RequiredPrivilege, "govern_account"),
    HttpApiEndpoint.post("deactivate", "/people/:id/deactivate", {
      params: id,
      success: PersonWire,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_account"),
    HttpApiEndpoint.post("reactivate", "/people/:id/reactivate", {
      params: id,
      success: PersonWire,
      error: NotFound,
    }).annotate(RequiredPrivilege, "govern_account"),
    listAll("invitations", "/invitations", {
      success: page({ invitations: Schema.Array(InvitationWire) }),
      privilege: "govern_account",
    }),
    HttpApiEndpoint.post("invite", "/invitations", {
      payload: Schema.Struct({
        name: nameText(NAME_MAX),
        role: Schema.optionalKey(AccountRoleWire),
        projects: Schema.optionalKey(
          Schema.Array(GrantWire).check(Schema.isMaxLength(GRANTS_MAX), distinctBy("project_id")),
        ),
      }),
      success: Schema.Struct({
        ...InvitationWire.fields,
        url: Schema.String.annotate({ description: "The link. It is shown only once." }),
      }).pipe(HttpApiSchema.status(201)),
      error: Unprocessable,
    }).annotate(RequiredPrivilege, "govern_account"),
    remove("revoke", "/invitations/:id", { params: id, privilege: "govern_account" }),
    show("members", "/projects/:pid/members", {
      params: projectParams,
      success: Schema.Struct({ members: Schema.Array(MemberWire) }),
      privilege: "read_project",
    }),
    HttpApiEndpoint.put("grant", "/projects/:pid/members/:id", {
      params: member,
      payload: Schema.Struct({ role: ProjectRoleWire }),
      success: HttpApiSchema.NoContent,
      error: NotFound,
    }).annotate(RequiredPrivilege, "govern_project"),
    remove("revokeGrant", "/projects/:pid/members/:id", { params: member, privilege: "govern_project" }),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
