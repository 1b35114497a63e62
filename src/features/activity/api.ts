import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { page } from "../../http/api/endpoints.ts";
import { NEWS } from "../../domain/service/news.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { Instant, Moment, pageQuery, Uuid } from "../../http/api/schemas.ts";

const nullable = Schema.NullOr;
const Named = Schema.Struct({ id: Uuid, name: Schema.String });

const ActivityEntryWire = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literals(NEWS).annotate({
    description: "The name of the event. `session.failed` is a `session.status`.",
  }),
  at: Instant,
  project: Named,
  session: nullable(Schema.Struct({ id: Uuid, name: nullable(Schema.String) })).annotate({
    description: "Null: it is about none, or the session was deleted.",
  }),
  change_request: nullable(Schema.Struct({ number: Schema.Finite, title: Schema.String })),
  trigger_slug: nullable(Schema.String),
  fire_id: nullable(Uuid),
  person: nullable(Named).annotate({
    description: "Who opened or merged the change request, commented on it, or asked for a review.",
  }),
  reviewer: nullable(Named).annotate({ description: "Who is asked for a review." }),
  state: nullable(Schema.String).annotate({
    description:
      "`session.turn_ended`: the turn's state. `session.waiting`: what the agent asks for. `change_request.remarked`: the kind of the remark.",
  }),
  code: nullable(Schema.String).annotate({ description: "Why something failed or was refused." }),
  own: Schema.Boolean.annotate({
    description:
      "It is about a session or a change request of the caller, answers a comment of hers, or asks her.",
  }),
}).annotate({ identifier: "ActivityEntry" });

const ActivityPage = page({
  entries: Schema.Array(ActivityEntryWire),
  seen_at: nullable(Instant).annotate({
    description: "Until when the caller has seen the list. Null: she never looked.",
  }),
});

/** What happened in all projects that the caller sees, for people who read it afterwards (api.md 8). */
export class ActivityGroup extends HttpApiGroup.make("activity")
  .add(
    HttpApiEndpoint.get("list", "/activity", {
      query: {
        ...pageQuery,
        own: Schema.optionalKey(Schema.Literals(["true", "false"])).annotate({
          description: "`true`: only entries that are the caller's own.",
        }),
      },
      success: ActivityPage,
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.post("see", "/activity/seen", {
      payload: Schema.Struct({
        at: Moment.annotate({ description: "That of the newest entry that was shown." }),
      }),
      success: HttpApiSchema.NoContent,
    }).annotate(RequiredPrivilege, "read_project"),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
