/** Changes of triggers that a person describes (api.md 4 "Changes of triggers"): their lines, and the change requests for them. */
import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { PROMPT_LIMIT_BYTES } from "../../domain/trigger/prompt.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { ChangeRequestSummary } from "./api.ts";
import { BadRequest, Conflict, Forbidden, NotFound, Unprocessable } from "../../http/api/errors.ts";
import { Instant, optionalText, projectParams } from "../../http/api/schemas.ts";
import { Slug, triggerParams } from "../../http/api/triggers/triggers.ts";

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
  title: field,
  prompt: Schema.optionalKey(optionalText(PROMPT_LIMIT_BYTES + FIELD_MAX)),
  agent: field,
  cron: field,
  timezone: field,
  secret_env: field,
  events: names,
  branches: names,
  if: Schema.optionalKey(
    Schema.Record(
      optionalText(FIELD_MAX),
      Schema.Union([optionalText(FIELD_MAX), Schema.Finite, Schema.Boolean]),
    ),
  ),
  enabled: Schema.optionalKey(Schema.Boolean),
  /** The slug of the trigger that this one takes the place of, with the same slug and type. */
  replaces: Schema.optionalKey(Slug),
}).annotate({ identifier: "TriggerWish" });

/** Merges the change request at once, if its caller may merge. */
const merge = Schema.optionalKey(Schema.Boolean);
const Proposal = Schema.Struct({ ...TriggerWish.fields, merge }).annotate({ identifier: "TriggerProposal" });
const TriggerAction = Schema.Struct({
  action: Schema.Literals(["pause", "resume", "delete"]),
  merge,
}).annotate({ identifier: "TriggerAction" });

const Draft = Schema.Struct({
  /** The entry for platform.toml. Null while the description has issues. */
  lines: Schema.NullOr(Schema.String),
  /** The next five instants of the schedule, as soon as it can be read. */
  upcoming: Schema.Array(Instant),
  /** Where its deliveries will go. Null for a schedule, and without a slug. */
  webhook_url: Schema.NullOr(Schema.String),
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
    }).annotate(RequiredPrivilege, "try_triggers"),
    // The commit is a person's, so an agent's token cannot make it.
    HttpApiEndpoint.post("propose", "/proposals", {
      params: projectParams,
      payload: Proposal,
      success: ChangeRequestSummary.pipe(HttpApiSchema.status(201)),
      error: [BadRequest, Forbidden, NotFound, Conflict, Unprocessable],
    }).annotate(RequiredPrivilege, "propose_trigger"),
    HttpApiEndpoint.post("act", "/:slug/proposals", {
      params: triggerParams,
      payload: TriggerAction,
      success: ChangeRequestSummary.pipe(HttpApiSchema.status(201)),
      error: [BadRequest, Forbidden, NotFound, Conflict, Unprocessable],
    }).annotate(RequiredPrivilege, "propose_trigger"),
  )
  .middleware(Authorized)
  .prefix("/v1/projects/:pid/triggers") {}
