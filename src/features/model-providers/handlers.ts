/** Handlers of api.ts. No answer has a key. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import * as Result from "effect/Result";
import { HttpApiBuilder } from "effect/http-api";
import type { ProviderKind } from "../../domain/sandbox/account-provider.ts";
import { unfitFor } from "../../domain/model/menu.ts";
import { NANO } from "../../domain/sandbox/spend.ts";
import { Caller } from "../../http/api/access.ts";
import { badRequest, Conflict, notFound, Unprocessable } from "../../http/api/errors.ts";
import { Platform } from "../../http/api/platform.ts";
import { withApiErrors, projectFor, sessionFor } from "../../http/steps/answers.ts";
import { wireForm } from "../../http/steps/wire.ts";
import { withAudit } from "../../services/audit.ts";
import { newUuid } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { type Change, ModelProvidersGroup, ModelProviderWire, type Wish } from "./api.ts";
import { openKey, sealKey } from "./keys.ts";
import { ModelUsage } from "./ports/model-usage.ts";
import { ModelProviders, type ModelProvider } from "./ports/model-providers.ts";
import { defaultBaseUrl } from "./rules/kinds.ts";
import { callPrice } from "../../domain/model/prices.ts";
import {
  keyFault,
  MODELS_MAX,
  modelsFault,
  nameFault,
  ownerAt,
  parseBaseUrl,
  type ProviderPlace,
} from "./rules/provider.ts";
import { placeRefusal, type Trial, type TrialRefusal, tryProvider } from "./trial.ts";

const { models_left_out: _ofASave, ...recordFields } = ModelProviderWire.fields;
const providerForm = wireForm(Schema.Struct(recordFields));

/** @param leftOut how many models its list has beyond those that were saved. Null if it was not asked for them */
const showProvider = ({ refusal, ...provider }: ModelProvider, leftOut: number | null = null) => ({
  ...providerForm({
    ...provider,
    unpriced: provider.models.filter((model) => callPrice([model], provider.prices) === null),
    refusal: refusal && { at: refusal.at, message: refusal.text },
  }),
  ...(leftOut !== null && { models_left_out: leftOut }),
});

const sound = (field: string, fault: string | null) =>
  fault === null ? Effect.void : Effect.fail(badRequest(field, fault));

const readBaseUrl = Effect.fnUntraced(function* (kind: ProviderKind, wish: string | undefined) {
  const text = wish ?? defaultBaseUrl(kind);
  if (text === null) return yield* badRequest("base_url", "must be given for this kind");
  const parsed = parseBaseUrl(text);
  return Result.isFailure(parsed) ? yield* badRequest("base_url", parsed.failure) : parsed.success;
});

interface Saving extends Trial {
  /** Absent or empty: what the provider lists. */
  readonly models: readonly string[] | undefined;
  readonly isTried: boolean;
}

const refuseTrial = ({ refusal, advice }: TrialRefusal) =>
  new Unprocessable({
    error: [refusal, advice, "Nothing was saved."].filter((part) => part !== null).join(" "),
    code: "provider_refused",
  });

/** The models to save, how many the provider lists beside them, and when the provider accepted the key. Fails with the provider's own words. */
const settleModels = Effect.fnUntraced(function* ({ models = [], isTried, ...trial }: Saving) {
  const wish = [...new Set(models)];
  yield* sound("models", modelsFault(wish));
  if (!isTried) {
    if (wish.length === 0)
      yield* badRequest("models", "must name a model, since the provider is not asked for them");
    const refusal = yield* placeRefusal(trial.baseUrl);
    if (refusal !== null) return yield* refuseTrial(refusal);
    return { models: wish, leftOut: null, triedAt: null };
  }
  const result = yield* tryProvider(trial);
  if ("refusal" in result) return yield* refuseTrial(result);
  const valid = result.models.filter((model) => modelsFault([model]) === null);
  // The first one is the provider's default, and some providers begin with what no agent can work with.
  const { fit = [], unfit = [] } = Object.groupBy(valid, (id) =>
    unfitFor({ id }) === null ? "fit" : "unfit",
  );
  const choice = [...fit, ...unfit].slice(0, MODELS_MAX);
  if (wish.length === 0 && choice.length === 0)
    yield* badRequest("models", "must name a model, since the provider lists none");
  const triedAt = yield* Clock.currentTimeMillis;
  return wish.length > 0
    ? { models: wish, leftOut: null, triedAt }
    : { models: choice, leftOut: valid.length - choice.length, triedAt };
});

const ofAccount = Effect.map(Caller, ({ accountId }): ProviderPlace => ({
  accountId,
  projectId: null,
  userId: null,
}));
const ofCaller = Effect.map(Caller, ({ accountId, user }): ProviderPlace => ({
  accountId,
  projectId: null,
  userId: user.id,
}));
const ofProject = Effect.fnUntraced(function* (pid: string) {
  const { accountId, id: projectId } = yield* projectFor(yield* Caller, pid);
  return { accountId, projectId, userId: null } satisfies ProviderPlace;
});

/** The subject of a sentence about an owner. */
const WHO = { account: "The account has", project: "The project has", person: "You have" } as const;

/** The part that all rows of the audit record share. */
const about = ({ projectId, ...place }: ProviderPlace) => ({
  changes: { owner: ownerAt({ projectId, ...place }) },
  ...(projectId !== null && { projectId }),
});

const list = Effect.fnUntraced(function* (place: ProviderPlace) {
  return {
    model_providers: (yield* (yield* ModelProviders).list(place)).map((provider) => showProvider(provider)),
  };
});

const create = Effect.fnUntraced(function* (
  place: ProviderPlace,
  { name, kind, key = "", ...wish }: typeof Wish.Type,
) {
  yield* sound("name", nameFault(name));
  yield* sound("key", keyFault(key));
  const baseUrl = yield* readBaseUrl(kind, wish.base_url);
  const { models, leftOut, triedAt } = yield* settleModels({
    kind,
    baseUrl,
    key,
    models: wish.models,
    isTried: wish.try ?? true,
  });
  const id = yield* newUuid;
  const prices = wish.prices ?? {};
  yield* sound("prices", modelsFault(Object.keys(prices)));
  const row = { ...place, id, name, kind, baseUrl, models, prices, hasKey: key !== "", triedAt };
  const { changes, ...where } = about(place);
  return yield* (yield* ModelProviders)
    .create({ ...row, sealed: yield* sealKey(row, key, 1), now: yield* Clock.currentTimeMillis })
    .pipe(
      withAudit((provider) => ({
        action: "model_provider.created",
        target: provider.id,
        ...where,
        changes: { ...changes, name, kind, base_url: baseUrl },
      })),
      Effect.map((provider) => showProvider(provider, leftOut)),
      Effect.catchTags({
        NameTaken: () =>
          Effect.fail(
            new Conflict({ error: `${WHO[ownerAt(place)]} a model provider ${name}.`, code: "name_taken" }),
          ),
        ProvidersFull: ({ limit }) =>
          Effect.fail(
            new Conflict({
              error: `${WHO[ownerAt(place)]} ${limit} model providers, the most that are possible. Delete one first.`,
              code: "too_many_providers",
              details: { limit },
            }),
          ),
      }),
    );
});

const providerFor = Effect.fnUntraced(function* (place: ProviderPlace, id: string) {
  return (yield* (yield* ModelProviders).get(place, id)) ?? (yield* notFound("model provider"));
});

/** The stored key, or what is wrong with using it for this address: a key goes where its owner sent it, and nowhere else. */
const storedKey = Effect.fnUntraced(function* (provider: ModelProvider, baseUrl: string) {
  if (!provider.hasKey) return "";
  if (new URL(baseUrl).origin !== new URL(provider.baseUrl).origin)
    return yield* badRequest("key", "must be given again, since the address has another host");
  const opened = openKey(yield* Keyring, provider);
  if (Result.isFailure(opened))
    return yield* new Conflict({
      error: "The stored key cannot be opened with this service's master key. Give the key again.",
      code: "secret_unreadable",
    });
  return opened.success;
});

/** The provider does not know the price, so it is not asked. */
const isOnlyPrices = (wish: typeof Change.Type): boolean =>
  wish.prices !== undefined && Object.keys(wish).length === 1;

const change = Effect.fnUntraced(function* (place: ProviderPlace, id: string, wish: typeof Change.Type) {
  const provider = yield* providerFor(place, id);
  const { kind } = provider;
  const prices = wish.prices ?? provider.prices;
  yield* sound("prices", modelsFault(Object.keys(prices)));
  yield* sound("key", keyFault(wish.key ?? ""));
  const baseUrl = yield* readBaseUrl(kind, wish.base_url ?? provider.baseUrl);
  const key = wish.key ?? (yield* storedKey(provider, baseUrl));
  const { models, leftOut, triedAt } = isOnlyPrices(wish)
    ? { ...provider, leftOut: null }
    : yield* settleModels({
        kind,
        baseUrl,
        key,
        models: wish.models ?? provider.models,
        isTried: wish.try ?? true,
      });
  const row = { baseUrl, models, prices, hasKey: key !== "", triedAt };
  const sealed = yield* sealKey(provider, key, provider.sealed.version + 1);
  const { changes, ...where } = about(place);
  const result = yield* (yield* ModelProviders)
    .change(place, id, { ...row, sealed, now: yield* Clock.currentTimeMillis })
    .pipe(
      withAudit((after) =>
        after === null
          ? null
          : {
              action: "model_provider.updated",
              target: id,
              ...where,
              changes: {
                ...changes,
                name: after.name,
                base_url: baseUrl,
                new_key: wish.key !== undefined,
                ...(wish.prices !== undefined && { prices: JSON.stringify(wish.prices) }),
              },
            },
      ),
      Effect.catchTag("Fenced", () =>
        Effect.fail(
          new Conflict({
            error: "Another request changed this model provider at the same time. Try again.",
            code: "conflict",
          }),
        ),
      ),
    );
  return result === null ? yield* notFound("model provider") : showProvider(result, leftOut);
});

const remove = Effect.fnUntraced(function* (place: ProviderPlace, id: string) {
  const { name } = yield* providerFor(place, id);
  const { changes, ...where } = about(place);
  const row = {
    action: "model_provider.deleted",
    target: id,
    ...where,
    changes: { ...changes, name },
  } as const;
  const removal = (yield* ModelProviders).remove(place, id);
  if (!(yield* removal.pipe(withAudit((isRemoved) => (isRemoved ? row : null)))))
    return yield* notFound("model provider");
});

/** What passed the service for a session: nothing if the session has its own keys. */
const sessionUsage = Effect.fnUntraced(function* (params: { readonly pid: string; readonly sid: string }) {
  const session = yield* sessionFor(yield* Caller, params);
  const rows = yield* (yield* ModelUsage).ofSession(session.id);
  return {
    models: rows.map(({ model, calls, untoldCalls, input, cached, output, estimated, cost }) => ({
      model,
      calls,
      untold_calls: untoldCalls,
      input_tokens: input,
      cached_tokens: cached,
      output_tokens: output,
      estimated_tokens: estimated,
      cost_usd: cost / NANO,
    })),
  };
});

export const modelProvidersHandlers = HttpApiBuilder.group(
  Platform.add(ModelProvidersGroup),
  "modelProviders",
  (handlers) =>
    handlers
      .handle("list", () => withApiErrors(Effect.flatMap(ofAccount, list)))
      .handle("create", ({ payload }) =>
        withApiErrors(Effect.flatMap(ofAccount, (place) => create(place, payload))),
      )
      .handle("change", ({ params, payload }) =>
        withApiErrors(Effect.flatMap(ofAccount, (place) => change(place, params.id, payload))),
      )
      .handle("delete", ({ params }) =>
        withApiErrors(Effect.flatMap(ofAccount, (place) => remove(place, params.id))),
      )
      .handle("listOwn", () => withApiErrors(Effect.flatMap(ofCaller, list)))
      .handle("createOwn", ({ payload }) =>
        withApiErrors(Effect.flatMap(ofCaller, (place) => create(place, payload))),
      )
      .handle("changeOwn", ({ params, payload }) =>
        withApiErrors(Effect.flatMap(ofCaller, (place) => change(place, params.id, payload))),
      )
      .handle("deleteOwn", ({ params }) =>
        withApiErrors(Effect.flatMap(ofCaller, (place) => remove(place, params.id))),
      )
      .handle("listOfProject", ({ params }) => withApiErrors(Effect.flatMap(ofProject(params.pid), list)))
      .handle("createForProject", ({ params, payload }) =>
        withApiErrors(Effect.flatMap(ofProject(params.pid), (place) => create(place, payload))),
      )
      .handle("changeOfProject", ({ params, payload }) =>
        withApiErrors(Effect.flatMap(ofProject(params.pid), (place) => change(place, params.id, payload))),
      )
      .handle("deleteOfProject", ({ params }) =>
        withApiErrors(Effect.flatMap(ofProject(params.pid), (place) => remove(place, params.id))),
      )
      .handle("usage", ({ params }) => withApiErrors(sessionUsage(params))),
);
