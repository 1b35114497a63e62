import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { OUTBOUND_EVENTS } from "./rules/events.ts";
import { OUTBOUND_FORMATS } from "./rules/outbound-format.ts";
import { DISABLED_REASONS } from "./rules/outbound-tries.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { page, remove, show } from "../../http/api/endpoints.ts";
import { BadRequest, Conflict, NotFound, Unavailable } from "../../http/api/errors.ts";
import { Instant, optionalText, pageQuery, projectParams, Uuid } from "../../http/api/schemas.ts";

const nullable = Schema.NullOr;

export const DeliveryWire = Schema.Struct({
  id: Uuid,
  event_id: Schema.String.annotate({ description: "The header `webhook-id`: the same at each try." }),
  type: Schema.String,
  status: Schema.Literals(["pending", "delivered", "failed", "cancelled"]),
  tries: Schema.Finite,
  next_try_at: nullable(Instant),
  last_try: nullable(
    Schema.Struct({
      at: Instant,
      status: nullable(Schema.Finite),
      error: nullable(Schema.String),
      answer: Schema.String,
      took_ms: Schema.Finite,
    }),
  ),
  data: Schema.Record(Schema.String, Schema.Unknown),
  created_at: Instant,
  ended_at: nullable(Instant),
}).annotate({ identifier: "OutboundDelivery" });

const webhookFields = {
  id: Uuid,
  format: Schema.Literals(OUTBOUND_FORMATS),
  url: Schema.String.annotate({
    description: "As people may see it: the address of a chat and a query are masked.",
  }),
  events: Schema.Array(Schema.Literals(OUTBOUND_EVENTS)),
  status: Schema.Literals(["enabled", "disabled"]),
  disabled_reason: nullable(Schema.Literals(DISABLED_REASONS)),
  failing_since: nullable(Instant),
  warning: nullable(Schema.String),
  previous_secret_valid_until: nullable(Instant),
  last_delivery: nullable(DeliveryWire),
  created_at: Instant,
  updated_at: Instant,
};
export const WebhookWire = Schema.Struct(webhookFields).annotate({ identifier: "OutboundWebhook" });

const secret = nullable(Schema.String).annotate({
  description: "The signing secret, which is shown only now. Null: the format has no signature.",
});
const NewWebhookWire = Schema.Struct({ ...webhookFields, secret }).annotate({
  identifier: "NewOutboundWebhook",
});

const WebhookPage = page({ webhooks: Schema.Array(WebhookWire) });
const DeliveryPage = page({ deliveries: Schema.Array(DeliveryWire) });

const url = optionalText(2048);
const events = Schema.Array(Schema.Literals(OUTBOUND_EVENTS)).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(OUTBOUND_EVENTS.length),
);
const givenSecret = Schema.optionalKey(optionalText(200));

export const Wish = Schema.Struct({
  url,
  format: Schema.optionalKey(Schema.Literals(OUTBOUND_FORMATS)),
  events,
  secret: givenSecret,
});
export const Change = Schema.Struct({
  url: Schema.optionalKey(url),
  events: Schema.optionalKey(events),
  status: Schema.optionalKey(Schema.Literals(["enabled", "disabled"])),
});
const Rotation = Schema.Struct({ secret: givenSecret });
const Rotated = Schema.Struct({ secret: Schema.String, previous_valid_until: Instant });

export const Tested = Schema.Struct({
  delivered: Schema.Boolean,
  status: nullable(Schema.Finite),
  error: nullable(Schema.String),
  answer: Schema.String,
  took_ms: Schema.Finite,
}).annotate({ identifier: "OutboundTest" });

const webhookParams = { ...projectParams, id: Uuid };
const deliveryParams = { ...webhookParams, did: Uuid };

/**
 * Outbound webhooks: receivers of a project's events, and what they were sent (api.md 12). The webhooks that a project receives are
 * triggers.
 */
export class OutboundWebhooksGroup extends HttpApiGroup.make("outboundWebhooks")
  .add(
    HttpApiEndpoint.get("list", "/", {
      params: projectParams,
      query: pageQuery,
      success: WebhookPage,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.post("create", "/", {
      params: projectParams,
      payload: Wish,
      success: NewWebhookWire.pipe(HttpApiSchema.status(201)),
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_project"),
    show("get", "/:id", { params: webhookParams, success: WebhookWire, privilege: "read_project" }),
    HttpApiEndpoint.patch("change", "/:id", {
      params: webhookParams,
      payload: Change,
      success: WebhookWire,
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_project"),
    remove("delete", "/:id", { params: webhookParams, privilege: "govern_project" }),
    HttpApiEndpoint.post("test", "/:id/test", {
      params: webhookParams,
      success: Tested,
      error: [NotFound, Unavailable],
    }).annotate(RequiredPrivilege, "govern_project"),
    HttpApiEndpoint.post("rotate", "/:id/rotate", {
      params: webhookParams,
      payload: Rotation,
      success: Rotated,
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_project"),
    HttpApiEndpoint.get("deliveries", "/:id/deliveries", {
      params: webhookParams,
      query: pageQuery,
      success: DeliveryPage,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
    HttpApiEndpoint.post("replay", "/:id/deliveries/:did/replay", {
      params: deliveryParams,
      success: DeliveryWire.pipe(HttpApiSchema.status(202)),
      error: [NotFound, Conflict],
    }).annotate(RequiredPrivilege, "govern_project"),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid/webhooks") {}
