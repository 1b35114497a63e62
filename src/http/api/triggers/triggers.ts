import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { listAll, show } from "../endpoints.ts";
import { RUN_STATES } from "../../../domain/session/run-outcome.ts";
import { EVENT_SKIPS } from "../../../domain/trigger/event-skip.ts";
import { RequiredPrivilege, Authorized } from "../access.ts";
import { BadRequest, Conflict, Internal, NotFound, TooMany, Unprocessable } from "../errors.ts";
import { Instant, Json, optionalText, projectParams, Uuid, Warning } from "../schemas.ts";

const nullable = Schema.NullOr;
/** The limit of spec 8. */
const SLUG_MAX = 128;
export const Slug = optionalText(SLUG_MAX);

/** What became of a fire's session. */
export const RunOutcomeWire = Schema.Struct({
  state: Schema.Literals(RUN_STATES),
  code: nullable(Schema.String),
});

const FilterConditions = Schema.Record(
  Schema.String,
  Schema.Union([Schema.String, Schema.Finite, Schema.Boolean]),
);

/** The conditions on a delivery (`[webhooks.<slug>]`). Null for each list or table that the manifest omits. */
const FilterWire = Schema.Struct({
  events: nullable(Schema.Array(Schema.String)),
  branches: nullable(Schema.Array(Schema.String)),
  deletions: Schema.Boolean,
  own_pushes: Schema.Boolean,
  own_requests: Schema.Boolean,
  own_comments: Schema.Boolean,
  if: nullable(FilterConditions),
  unless: nullable(FilterConditions),
}).annotate({ identifier: "WebhookFilter" });

/** What each list shows of a trigger. */
const TriggerSummary = Schema.Struct({
  slug: Slug,
  name: Schema.String,
  type: Schema.Literals(["cron", "webhook"]),
  agent: Schema.String,
  enabled: Schema.Boolean,
  cron: Schema.optionalKey(Schema.String),
  timezone: Schema.optionalKey(Schema.String),
  last_fired_at: nullable(Instant),
  next_fire_at: nullable(Instant),
  last_fire: nullable(
    Schema.Struct({ id: Uuid, status: Schema.String, at: Instant, outcome: nullable(RunOutcomeWire) }),
  ),
}).annotate({ identifier: "TriggerSummary" });

const TriggerWire = Schema.Struct({
  ...TriggerSummary.fields,
  title: Schema.optionalKey(Schema.String),
  prompt: Schema.String,
  secret_env: Schema.optionalKey(Schema.String),
  webhook_url: Schema.optionalKey(Schema.String),
  filter: Schema.optionalKey(FilterWire),
  upcoming: Schema.Array(Instant),
}).annotate({ identifier: "Trigger" });

/** The trigger listing: valid entries, and the errors of the others (spec 4.4, 7.2). */
export const TriggerListing = Schema.Struct({
  triggers: Schema.Array(TriggerWire),
  errors: Schema.Array(
    Schema.Struct({
      slug: nullable(Schema.String),
      index: nullable(Schema.Finite),
      path: nullable(Schema.String),
      message: Schema.String,
      line: nullable(Schema.Finite),
    }),
  ),
  manifest: Schema.Struct({
    commit: nullable(Schema.String),
    synced_at: nullable(Instant),
    stale: Schema.Boolean,
  }),
  warnings: Schema.Array(Warning).annotate({
    description: "Possible problems of the project's sessions, such as required secrets without a value.",
  }),
  triggers_paused: Schema.Boolean,
  scheduler: Schema.Struct({ ticked_at: nullable(Instant), late: Schema.Boolean }),
}).annotate({ identifier: "TriggerListing" });

/** The triggers of several projects. */
const TriggerPage = Schema.Struct({
  projects: Schema.Array(
    Schema.Struct({
      id: Uuid,
      name: Schema.String,
      triggers: Schema.Array(TriggerSummary),
      errors: Schema.Finite.annotate({ description: "How many mistakes the project's manifest has." }),
      stale: Schema.Boolean.annotate({
        description: "The newest manifest cannot be read. The triggers of the last good one stay in force.",
      }),
      triggers_paused: Schema.Boolean,
    }),
  ).annotate({
    description:
      "Active projects with triggers, or with mistakes in their manifest. The newest project is the first.",
  }),
  next_cursor: nullable(Schema.String).annotate({
    description: "A page with few projects, or none, may be followed by others.",
  }),
}).annotate({ identifier: "TriggerPage" });

export const triggerParams = { ...projectParams, slug: Slug };

/** Free text of a manual fire. It becomes part of a prompt, which has its own limit. */
const MESSAGE_MAX = 64 * 1024;
export const HandMessage = Schema.Struct({
  text: Schema.optionalKey(optionalText(MESSAGE_MAX)),
  source: Schema.optionalKey(optionalText(200)),
});
export const PreviewRequest = Schema.Struct({
  kind: Schema.Literals(["cron", "webhook", "manual"]),
  body: Schema.optionalKey(Json),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  ...HandMessage.fields,
  at: Schema.optionalKey(Instant),
});

/** Triggers (api.md 4); their fires are in api/triggers/fires.ts. The webhook receiver is a raw route (http/webhooks/webhooks.ts). */
export class TriggersGroup extends HttpApiGroup.make("triggers")
  .add(
    show("list", "/projects/:pid/triggers", {
      params: projectParams,
      success: TriggerListing,
      privilege: "read_project",
    }),
    HttpApiEndpoint.post("fire", "/projects/:pid/triggers/:slug/fire", {
      params: triggerParams,
      payload: HandMessage,
      success: Schema.Struct({ status: Schema.Literal("fired"), session_id: Uuid }).pipe(
        HttpApiSchema.status(202),
      ),
      error: [NotFound, Conflict, TooMany, Internal, Unprocessable],
    }).annotate(RequiredPrivilege, "start_session"),
    HttpApiEndpoint.post("preview", "/projects/:pid/triggers/:slug/preview", {
      params: triggerParams,
      payload: PreviewRequest,
      success: Schema.Struct({
        prompt: Schema.String,
        variables: Schema.Unknown,
        outcome: Schema.Literals(["fires", "pong", "filtered", ...EVENT_SKIPS]),
      }),
      error: [BadRequest, NotFound, Internal],
    }).annotate(RequiredPrivilege, "try_triggers"),
  )
  .add(listAll("listAll", "/triggers", { success: TriggerPage, privilege: "read_project" }))
  .middleware(Authorized)
  .prefix("/v1") {}
