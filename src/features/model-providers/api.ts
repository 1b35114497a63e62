import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { remove, show } from "../../http/api/endpoints.ts";
import { PROVIDER_KINDS, PROVIDER_OWNERS } from "../../domain/sandbox/account-provider.ts";
import { RequiredPrivilege, Authorized } from "../../http/api/access.ts";
import { BadRequest, Conflict, NotFound, Unprocessable } from "../../http/api/errors.ts";
import {
  Instant,
  optionalText,
  projectParams,
  sessionParams,
  nameText,
  text,
  Uuid,
} from "../../http/api/schemas.ts";
import { Price } from "../../domain/model/prices.ts";
import { KEY_MAX, MODELS_MAX } from "./rules/provider.ts";

const prices = Schema.Record(Schema.String, Price).annotate({
  description:
    "Own prices by a model's id, in dollars for a million tokens. Other models have the service's price, if it knows one.",
});

export const ModelProviderWire = Schema.Struct({
  id: Uuid,
  owner: Schema.Literals(PROVIDER_OWNERS),
  name: Schema.String.annotate({ description: "The first part of `provider/model`." }),
  kind: Schema.Literals(PROVIDER_KINDS),
  base_url: Schema.String,
  has_key: Schema.Boolean,
  models: Schema.Array(Schema.String).annotate({ description: "The first one is the provider's default." }),
  models_left_out: Schema.optionalKey(Schema.Finite).annotate({
    description: `Only where a save took the models that the provider lists: how many more it lists. A provider has at most ${MODELS_MAX}. Name others in \`models\`.`,
  }),
  prices,
  unpriced: Schema.Array(Schema.String).annotate({
    description:
      "Those of the models that have no known price. Where a limit in dollars applies, their calls are refused.",
  }),
  tried_at: Schema.NullOr(Instant).annotate({
    description: "When the provider last accepted this address and key. Null: they were saved without a try.",
  }),
  refusal: Schema.NullOr(Schema.Struct({ at: Instant, message: Schema.String })).annotate({
    description:
      "The last call that the provider refused, in its own words. Null: a call or a try succeeded since.",
  }),
  created_at: Instant,
  updated_at: Instant,
}).annotate({ identifier: "ModelProvider" });

const UsageWire = Schema.Struct({
  model: Schema.String.annotate({ description: "`provider/model`, with a provider of the account." }),
  calls: Schema.Finite,
  untold_calls: Schema.Finite.annotate({ description: "Those of the calls whose answer named no tokens." }),
  input_tokens: Schema.Finite.annotate({ description: "With the cached ones." }),
  cached_tokens: Schema.Finite,
  output_tokens: Schema.Finite,
  estimated_tokens: Schema.Finite.annotate({
    description: "Beside the others: of calls whose answer broke off, or named none.",
  }),
  cost_usd: Schema.Finite.annotate({ description: "By the prices that held. 0: none was known." }),
}).annotate({ identifier: "CountedModel" });

const key = optionalText(KEY_MAX).annotate({
  description: "It is never shown again. Empty: the server needs none.",
});
const models = Schema.Array(text(200))
  .check(Schema.isMaxLength(MODELS_MAX))
  .annotate({
    description: `Absent or empty: those that the provider lists, ${MODELS_MAX} of them at most.`,
  });
const tries = Schema.optionalKey(Schema.Boolean).annotate({
  description: "Whether the provider is asked for its models before anything is saved. Default: true.",
});

export const Wish = Schema.Struct({
  name: nameText(40),
  kind: Schema.Literals(PROVIDER_KINDS),
  base_url: Schema.optionalKey(text(2048)).annotate({
    description: "Absent: the maker's own. `openai-compatible` has none.",
  }),
  key: Schema.optionalKey(key),
  models: Schema.optionalKey(models),
  prices: Schema.optionalKey(prices.check(Schema.isMaxProperties(MODELS_MAX))),
  try: tries,
});
export const Change = Schema.Struct({
  base_url: Schema.optionalKey(text(2048)),
  key: Schema.optionalKey(key),
  models: Schema.optionalKey(models),
  prices: Schema.optionalKey(prices.check(Schema.isMaxProperties(MODELS_MAX))),
  try: tries,
});

const params = { id: Uuid };
const inProject = { ...projectParams, id: Uuid };
const list = Schema.Struct({ model_providers: Schema.Array(ModelProviderWire) });
const createdProvider = ModelProviderWire.pipe(HttpApiSchema.status(201));
const refusals = [BadRequest, NotFound, Conflict, Unprocessable] as const;

/** Providers of models of the account, of a project and of the caller, whose keys no sandbox gets, and what sessions used of them (api.md 2). */
export class ModelProvidersGroup extends HttpApiGroup.make("modelProviders")
  .add(
    HttpApiEndpoint.get("list", "/model-providers", { success: list }).annotate(
      RequiredPrivilege,
      "see_model_providers",
    ),
    HttpApiEndpoint.post("create", "/model-providers", {
      payload: Wish,
      success: createdProvider,
      error: refusals,
    }).annotate(RequiredPrivilege, "govern_account"),
    HttpApiEndpoint.patch("change", "/model-providers/:id", {
      params,
      payload: Change,
      success: ModelProviderWire,
      error: refusals,
    }).annotate(RequiredPrivilege, "govern_account"),
    remove("delete", "/model-providers/:id", { params, privilege: "govern_account" }),
    HttpApiEndpoint.get("listOwn", "/me/model-providers", { success: list }).annotate(
      RequiredPrivilege,
      "manage_own_model_providers",
    ),
    HttpApiEndpoint.post("createOwn", "/me/model-providers", {
      payload: Wish,
      success: createdProvider,
      error: refusals,
    }).annotate(RequiredPrivilege, "manage_own_model_providers"),
    HttpApiEndpoint.patch("changeOwn", "/me/model-providers/:id", {
      params,
      payload: Change,
      success: ModelProviderWire,
      error: refusals,
    }).annotate(RequiredPrivilege, "manage_own_model_providers"),
    remove("deleteOwn", "/me/model-providers/:id", { params, privilege: "manage_own_model_providers" }),
    show("listOfProject", "/projects/:pid/model-providers", {
      params: projectParams,
      success: list,
      privilege: "see_project_model_providers",
    }),
    HttpApiEndpoint.post("createForProject", "/projects/:pid/model-providers", {
      params: projectParams,
      payload: Wish,
      success: createdProvider,
      error: refusals,
    }).annotate(RequiredPrivilege, "set_project_model_provider"),
    HttpApiEndpoint.patch("changeOfProject", "/projects/:pid/model-providers/:id", {
      params: inProject,
      payload: Change,
      success: ModelProviderWire,
      error: refusals,
    }).annotate(RequiredPrivilege, "set_project_model_provider"),
    remove("deleteOfProject", "/projects/:pid/model-providers/:id", {
      params: inProject,
      privilege: "set_project_model_provider",
    }),
    show("usage", "/projects/:pid/sessions/:sid/model-usage", {
      params: sessionParams,
      success: Schema.Struct({ models: Schema.Array(UsageWire) }),
      privilege: "read_project",
    }),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
