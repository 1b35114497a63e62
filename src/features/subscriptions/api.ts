import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { remove } from "../../http/api/endpoints.ts";
import { SUBSCRIPTION_BYTES_MAX } from "../../domain/agents/subscription.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { BadRequest, Forbidden, NotFound } from "../../http/api/errors.ts";
import { Instant, projectParams, text } from "../../http/api/schemas.ts";

export const SubscriptionWire = Schema.Struct({
  runtime: Schema.String,
  title: Schema.String.annotate({ description: "Its name for people." }),
  saved_at: Instant,
  renewed_at: Schema.NullOr(Instant).annotate({
    description: "When a sandbox last gave the file back that its runtime had renewed.",
  }),
  used_at: Schema.NullOr(Instant).annotate({ description: "When a sandbox last started with it." }),
}).annotate({ identifier: "OwnSubscription" });

const PossibleWire = Schema.Struct({
  runtime: Schema.String,
  title: Schema.String,
  how: Schema.String.annotate({ description: "The command that makes what is saved." }),
  file: Schema.NullOr(Schema.String).annotate({
    description: "The file below the home directory that is saved. Null: the token that the command prints.",
  }),
});

const params = { runtime: Schema.String };
const payload = Schema.Struct({
  // A longer one is refused in bytes.
  content: text(SUBSCRIPTION_BYTES_MAX + 1).annotate({
    description: "The token, or the file's text. At most 64 KiB. It is never shown again.",
  }),
});

/** A person's own subscriptions at the makers of agent runtimes (api.md 2). */
export class SubscriptionsGroup extends HttpApiGroup.make("subscriptions")
  .add(
    HttpApiEndpoint.get("list", "/me/subscriptions", {
      success: Schema.Struct({
        subscriptions: Schema.Array(SubscriptionWire),
        possible: Schema.Array(PossibleWire).annotate({
          description: "Those that the runtimes of this installation can use.",
        }),
      }),
    }).annotate(RequiredPrivilege, "manage_own_subscriptions"),
    HttpApiEndpoint.put("save", "/me/subscriptions/:runtime", {
      params,
      payload,
      success: SubscriptionWire,
      error: [BadRequest, NotFound],
    }).annotate(RequiredPrivilege, "manage_own_subscriptions"),
    remove("remove", "/me/subscriptions/:runtime", { params, privilege: "manage_own_subscriptions" }),
    HttpApiEndpoint.post("renew", "/projects/:pid/subscription", {
      params: projectParams,
      payload,
      success: HttpApiSchema.NoContent,
      error: [BadRequest, Forbidden, NotFound],
    }).annotate(RequiredPrivilege, "renew_subscription"),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
