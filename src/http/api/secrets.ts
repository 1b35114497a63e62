import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { show } from "./endpoints.ts";
import { RequiredPrivilege, Authorized } from "./access.ts";
import { BadRequest, Conflict, NotFound, Unprocessable } from "./errors.ts";
import { Instant, projectParams, Uuid } from "./schemas.ts";

export const SecretWire = Schema.Struct({
  name: Schema.String,
  masked: Schema.Boolean.annotate({
    description: "Whether the value is masked in logs and error texts. Values shorter than 6 bytes are not.",
  }),
  unseen: Schema.Array(Schema.String).annotate({
    description:
      "The invisible characters of the value, in words, such as `ends with a line end`. Empty for most values.",
  }),
  created_at: Instant,
  updated_at: Instant,
  updated_by: Schema.NullOr(Uuid),
  service: Schema.Boolean.annotate({
    description: "Whether the secret is the service's own: it verifies webhooks, and sandboxes never get it.",
  }),
  /** Until when the previous value verifies webhooks. Null if it does not. */
  previous_valid_until: Schema.NullOr(Instant),
  provider: Schema.NullOr(Schema.String).annotate({
    description:
      "The model provider whose key a secret of this name is, if the service can ask it. Else null.",
  }),
}).annotate({ identifier: "Secret" });

const Listing = Schema.Struct({
  secrets: Schema.Array(SecretWire),
  declared: Schema.Struct({
    required: Schema.Array(Schema.String),
    optional: Schema.Array(Schema.String),
    missing: Schema.Array(Schema.String),
  }),
  revision: Schema.String,
});

const secretParams = { ...projectParams, name: Schema.String };
/** 7 days: long enough to change a secret at every sender. */
const PREVIOUS_VALID_MAX_MS = 7 * 24 * 60 * 60 * 1000;
export const Value = Schema.Struct({
  value: Schema.String,
  /** Whether it is the service's own. Absent: as it was, and false for a new name. */
  service: Schema.optionalKey(Schema.Boolean),
  /** How long the replaced value still verifies webhooks. */
  previous_valid_ms: Schema.optionalKey(
    Schema.Finite.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: PREVIOUS_VALID_MAX_MS })),
  ),
  try: Schema.optionalKey(Schema.Boolean).annotate({
    description:
      "Whether a model provider is asked first, if the secret is the key of one that can be asked. Unless it accepts the key, nothing is saved.",
  }),
});

const Tried = Schema.Struct({
  provider: Schema.String,
  outcome: Schema.Literals(["accepted", "rejected", "unknown"]),
  message: Schema.String,
  advice: Schema.NullOr(Schema.String),
});

/** Project secrets: names are listed, values are never returned (api.md 5). */
export class SecretsGroup extends HttpApiGroup.make("secrets")
  .add(
    show("list", "/", { params: projectParams, success: Listing, privilege: "see_secret_names" }),
    HttpApiEndpoint.put("put", "/:name", {
      params: secretParams,
      payload: Value,
      success: [SecretWire, SecretWire.pipe(HttpApiSchema.status(201))],
      error: [BadRequest, NotFound, Conflict, Unprocessable],
    }).annotate(RequiredPrivilege, "write_secret"),
    HttpApiEndpoint.post("try", "/:name/try", {
      params: secretParams,
      success: Tried,
      error: [BadRequest, NotFound, Conflict],
    }).annotate(RequiredPrivilege, "write_secret"),
    HttpApiEndpoint.delete("delete", "/:name", {
      params: secretParams,
      success: HttpApiSchema.NoContent,
      error: [BadRequest, NotFound],
    }).annotate(RequiredPrivilege, "write_secret"),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid/secrets") {}
