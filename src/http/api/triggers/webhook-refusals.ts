import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api";
import { page } from "../endpoints.ts";
import { RequiredPrivilege, Authorized } from "../access.ts";
import { NotFound } from "../errors.ts";
import { Instant, pageQuery, projectParams, Uuid } from "../schemas.ts";
import { Slug } from "./triggers.ts";

const nullable = Schema.NullOr;

export const RefusalWire = Schema.Struct({
  id: Uuid,
  at: Instant,
  slug: Schema.String,
  status: Schema.Finite,
  code: Schema.String,
  reason: Schema.String,
  delivery_id: nullable(Schema.String),
  event: nullable(Schema.String),
  declared_bytes: nullable(Schema.Finite),
  body_bytes: nullable(Schema.Finite),
  address: Schema.String,
  forwarded_for: nullable(Schema.String),
}).annotate({ identifier: "WebhookRefusal" });

const RefusalPage = page({ webhook_refusals: Schema.Array(RefusalWire) });

/** Webhooks that the receiver refused: at most 500 for each project, for 7 days, without bodies and signatures. */
export class WebhookRefusalsGroup extends HttpApiGroup.make("webhookRefusals")
  .add(
    HttpApiEndpoint.get("list", "/projects/:pid/webhook-refusals", {
      params: projectParams,
      query: { ...pageQuery, slug: Schema.optionalKey(Slug) },
      success: RefusalPage,
      error: NotFound,
    }).annotate(RequiredPrivilege, "read_project"),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
