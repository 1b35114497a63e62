/** A new trigger that a person describes (api.md 4 "New triggers"): its lines, and the change request that adds them. */
import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { PROMPT_LIMIT_BYTES } from "../../domain/trigger/prompt.ts";
import { Access, Authorized } from "../../http/api/access.ts";
import { ChangeRequestSummary } from "./api.ts";
import { BadRequest, Conflict, NotFound, Unprocessable } from "../../http/api/errors.ts";
import { Instant, optionalText, projectParams } from "../../http/api/schemas.ts";

/** Longer than any valid value, so that the manifest's own words explain what is wrong with it. */
const FIELD_MAX = 4096;
/** As many as a filter may have, and a few more. */
const LIST_MAX = 60;

const field = Schema.optionalKey(optionalText(FIELD_MAX));
const names = Schema.optionalKey(Schema.Array(optionalText(FIELD_MAX)).check(Schema.isMaxLength(LIST_MAX)));

const TriggerWish = Schema.Struct({
  type: Schema.Literals(["cron", "webhook"]),
  slug: field,
  name: field,
  prompt: Schema.optionalKey(optionalText(PROMPT_LIMIT_BYTES + FIELD_MAX)),
  agent: field,
  cron: field,
  timezone: field,
  secret_env: field,
  events: names,
  branches: names,
}).annotate({ identifier: "TriggerWish" });

const Draft = Schema.Struct({
  /** The entry for platform.toml. Null while the description has issues. */
  lines: Schema.NullOr(Schema.String),
  /** The next five instants of the schedule, as soon as it can be read. */
  upcoming: Schema.Array(Instant),
  issues: Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String })),
});

/** It reads the manifest and changes nothing by itself: a change request does, once a person merges it. */
export class TriggerWishesGroup extends HttpApiGroup.make("triggerWishes")
  .add(
    HttpApiEndpoint.post("draft", "/drafts", {
      params: projectParams,
      payload: TriggerWish,
      success: Draft,
      error: [BadRequest, NotFound],
    }).annotate(Access, "try_triggers"),
    // The commit is a person's, so an agent's token cannot make it.
    HttpApiEndpoint.post("propose", "/proposals", {
      params: projectParams,
      payload: TriggerWish,
      success: ChangeRequestSummary.pipe(HttpApiSchema.status(201)),
      error: [BadRequest, NotFound, Conflict, Unprocessable],
    }).annotate(Access, "propose_trigger"),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid/triggers") {}
