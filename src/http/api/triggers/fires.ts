import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { listAll, page, show } from "../endpoints.ts";
import { FIRE_STATUSES } from "../../../domain/trigger/fire.ts";
import { RequiredPrivilege, Authorized } from "../access.ts";
import { Conflict, Internal, NotFound, TooMany, Unprocessable } from "../errors.ts";
import { Instant, pageQuery, projectParams, Uuid } from "../schemas.ts";
import { RunOutcomeWire, Slug, triggerParams } from "./triggers.ts";

const nullable = Schema.NullOr;

const FireWire = Schema.Struct({
  id: Uuid,
  trigger_slug: nullable(Slug).annotate({ description: "Null: a person's request for a session." }),
  kind: Schema.Literals(["cron", "webhook", "manual", "session"]).annotate({
    description:
      "`session`: a person asked for a session, which waits or waited for a free one. Lists do not have these.",
  }),
  status: Schema.Literals(FIRE_STATUSES),
  reason: nullable(Schema.String),
  scheduled_for: nullable(Instant),
  received_at: Instant,
  delivery_id: nullable(Schema.String),
  session_id: nullable(Uuid),
  outcome: nullable(RunOutcomeWire).annotate({
    description:
      "What became of its session, with the code of a failure or the reason of a stop. Null: it started no session.",
  }),
  session_name: nullable(Schema.String).annotate({
    description: "The name of its session. Null: it started none, or that has no name.",
  }),
  started_by: nullable(Schema.String).annotate({
    description: "The name of the person who ran it by hand. Null: another cause, or it started no session.",
  }),
  attempts: Schema.Finite,
  replay_of: nullable(Uuid).annotate({
    description:
      "The fire that this one repeats: a person replayed it, or its delivery came again after its session was lost.",
  }),
  duplicate_of: nullable(Uuid).annotate({
    description: "Of a repeated delivery: the fire that answered it. A replay repeats that fire.",
  }),
  verified_with: nullable(Schema.Literals(["current", "previous"])),
}).annotate({ identifier: "Fire" });

/** A fire's request. The body is a string if it is text, otherwise base64. */
const RequestWire = Schema.Struct({
  headers: nullable(
    Schema.Struct({
      content_type: nullable(Schema.String),
      user_agent: nullable(Schema.String),
      forwarded_for: nullable(Schema.String),
    }),
  ),
  body: Schema.String,
  encoding: Schema.Literals(["utf8", "base64"]),
});

export const FireDetail = Schema.Struct({
  ...FireWire.fields,
  request: nullable(RequestWire),
  prompt: nullable(Schema.String),
  position: nullable(Schema.Finite).annotate({
    description: "Its place in the account's queue, from 1. Null: it does not wait.",
  }),
}).annotate({ identifier: "FireDetail" });

export const QueueWire = Schema.Struct({
  fire_id: Uuid,
  project_id: Uuid,
  kind: FireWire.fields.kind,
  trigger_slug: nullable(Slug).annotate({ description: "Null: a person's request for a session." }),
  title: nullable(Schema.String).annotate({
    description:
      "The name of the session to be, else the first 200 characters of its prompt. Null: it has neither yet.",
  }),
  files: Schema.Finite.annotate({ description: "How many files wait with its prompt." }),
  person: nullable(Schema.Struct({ id: Uuid, name: Schema.String })).annotate({
    description: "Who asked for the session. Null: a trigger fired.",
  }),
  position: Schema.Finite,
  queued_at: Instant,
  expires_at: Instant,
});

const fireParams = { ...projectParams, id: Uuid };
export const statusQuery = {
  ...pageQuery,
  status: Schema.optionalKey(FireWire.fields.status),
  outcome: Schema.optionalKey(
    Schema.Literals(["failed"]).annotate({
      description: "`failed`: fires that could not start, and those whose session or its last turn failed.",
    }),
  ),
};
export const FirePage = page({ fires: Schema.Array(FireWire) });

/** A fire that started, manually or by a replay. */
export const FiredWire = Schema.Struct({ status: Schema.Literal("fired"), session_id: Uuid }).pipe(
  HttpApiSchema.status(202),
);

/** The ledger of fires and the queue (api.md 4 "Ledger", "Queue"). */
export class FiresGroup extends HttpApiGroup.make("fires")
  .add(
    HttpApiEndpoint.get("ofProject", "/projects/:pid/fires", {
      params: projectParams,
      query: { ...statusQuery, slug: Schema.optionalKey(Slug) },
      success: FirePage,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.get("ofTrigger", "/projects/:pid/triggers/:slug/fires", {
      params: triggerParams,
      query: statusQuery,
      success: FirePage,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    show("get", "/projects/:pid/fires/:id", {
      params: fireParams,
      success: FireDetail,
      privilege: "read_project",
    }),
    HttpApiEndpoint.post("replay", "/projects/:pid/fires/:id/replay", {
      params: fireParams,
      success: FiredWire,
      error: [NotFound, Conflict, Unprocessable, TooMany, Internal],
    }).annotate(RequiredPrivilege, "start_session"),
    HttpApiEndpoint.delete("cancel", "/projects/:pid/fires/:id", {
      params: fireParams,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "cancel_request"),
    listAll("queue", "/queue", { success: page({ queue: Schema.Array(QueueWire) }), privilege: "see_queue" }),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
