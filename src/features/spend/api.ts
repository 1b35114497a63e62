import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api";
import { remove, show } from "../../http/api/endpoints.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import {
  BadRequest,
  Conflict,
  Internal,
  NotFound,
  Unavailable,
  Unprocessable,
} from "../../http/api/errors.ts";
import { projectParams, sessionParams, Uuid } from "../../http/api/schemas.ts";
import { Slug } from "../../http/api/triggers/triggers.ts";

const Sums = Schema.Struct({
  usd: Schema.Finite.annotate({ description: "Of calls whose model has a known price." }),
  tokens: Schema.Finite,
}).annotate({ identifier: "Spent" });

const unit = Schema.Literals(["usd", "tokens"]);

export const LimitWire = Schema.Struct({
  id: Uuid,
  scope: Schema.Literals(["account", "project", "person", "each_session", "trigger", "session"]),
  subject: Schema.String.annotate({
    description:
      "The id of a session, a person or a project, or `project/slug` of a trigger. Otherwise empty.",
  }),
  project_id: Schema.NullOr(Uuid),
  name: Schema.String.annotate({ description: "Of the session, the person, the project or the trigger." }),
  unit,
  amount: Schema.Finite.annotate({ description: "Dollars, or tokens." }),
  spent: Schema.NullOr(Sums).annotate({
    description: "In the present day or month, or in the session's whole time. Null for each session.",
  }),
}).annotate({ identifier: "SpendLimit" });

/** A limit that was set. */
const SetLimitWire = Schema.Struct({
  ...LimitWire.fields,
  uncounted_sessions: Schema.Array(
    Schema.Struct({
      project_id: Uuid,
      id: Uuid,
      name: Schema.NullOr(Schema.String),
      reason: Schema.String.annotate({ description: "Why its calls are not counted, as a sentence." }),
    }),
  ).annotate({
    description:
      "The running sessions to which the limit applies, and whose calls of models it does not count. They go on until somebody stops them.",
  }),
}).annotate({ identifier: "SetSpendLimit" });

/** A limit that applies to a session. */
const AppliedWire = Schema.Struct({
  scope: Schema.Literals(["session", "trigger", "person", "project", "account"]),
  name: Schema.String,
  unit,
  amount: Schema.Finite.annotate({ description: "Dollars, or tokens." }),
  spent: Schema.Finite.annotate({ description: "In the limit's unit." }),
  reserved: Schema.Finite.annotate({ description: "For calls under way." }),
}).annotate({ identifier: "AppliedLimit" });

const SubjectWire = Schema.Struct({ id: Uuid, name: Schema.String, spent: Sums });

/** Exactly one of them. */
const amount = {
  usd: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0.000_001, maximum: 1_000_000 })),
  ).annotate({ description: "Dollars. Give this or `tokens`." }),
  tokens: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1e12 }))),
};

const Amount = Schema.Struct(amount);
export const Wish = Schema.Struct({
  scope: Schema.Literals(["account", "project", "person", "each_session"]),
  subject: Schema.optionalKey(Uuid).annotate({ description: "The id of the project or the person." }),
  ...amount,
});

const Applied = Schema.Struct({ spent: Sums, limits: Schema.Array(AppliedWire) });
const triggerParams = { ...projectParams, slug: Slug };

/** Limits of what models may cost or use, and what was spent (api.md 2). */
export class SpendGroup extends HttpApiGroup.make("spend")
  .add(
    HttpApiEndpoint.get("account", "/spend", {
      success: Schema.Struct({
        month: Schema.String.annotate({ description: "`YYYY-MM`, in UTC." }),
        spent: Sums,
        people: Schema.Array(SubjectWire),
        projects: Schema.Array(SubjectWire),
        days: Schema.Array(Schema.Struct({ day: Schema.String, spent: Sums })),
        limits: Schema.Array(LimitWire),
      }),
    }).annotate(RequiredPrivilege, "govern_account"),
    HttpApiEndpoint.put("setLimit", "/spend-limits", {
      payload: Wish,
      success: SetLimitWire,
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_account"),
    remove("removeLimit", "/spend-limits/:id", { params: { id: Uuid }, privilege: "govern_account" }),
    show("project", "/projects/:pid/spend", {
      params: projectParams,
      success: Schema.Struct({ month: Schema.String, spent: Sums, limits: Schema.Array(LimitWire) }),
      privilege: "read_project",
    }),
    show("session", "/projects/:pid/sessions/:sid/spend", {
      params: sessionParams,
      success: Applied,
      privilege: "read_project",
    }),
    HttpApiEndpoint.put("limitSession", "/projects/:pid/sessions/:sid/spend-limit", {
      params: sessionParams,
      payload: Amount,
      success: Applied,
      error: [BadRequest, NotFound, Conflict, Unprocessable, Internal, Unavailable],
    }).annotate(RequiredPrivilege, "limit_session"),
    remove("unlimitSession", "/projects/:pid/sessions/:sid/spend-limit", {
      params: sessionParams,
      privilege: "limit_session",
    }),
    HttpApiEndpoint.put("limitTrigger", "/projects/:pid/triggers/:slug/spend-limit", {
      params: triggerParams,
      payload: Amount,
      success: SetLimitWire,
      error: [BadRequest, NotFound, Conflict, Internal, Unavailable],
    }).annotate(RequiredPrivilege, "govern_project"),
    remove("unlimitTrigger", "/projects/:pid/triggers/:slug/spend-limit", {
      params: triggerParams,
      privilege: "govern_project",
    }),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
