/** Where the service joins the feature (services/feature.ts). */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { AccountModels, PassedUsages } from "../../services/projects/account-models.ts";
import { modelProvidersHandlers } from "./handlers.ts";
import { ModelProviders } from "./ports/model-providers.ts";
import { ModelUsage } from "./ports/model-usage.ts";

/** The core may know everything of a provider but its key and its address. */
const accountModels = Layer.effect(
  AccountModels,
  Effect.map(
    ModelProviders,
    ({ usable }) =>
      (user) =>
        Effect.map(usable(user), (providers) =>
          providers.map(({ owner, name, kind, models, prices }) => ({ owner, name, kind, models, prices })),
        ),
  ),
);
const passedUsages = Layer.effect(
  PassedUsages,
  Effect.map(ModelUsage, ({ days }) => days),
);

export const modelProviders = {
  answers: Layer.merge(accountModels, passedUsages),
  handlers: modelProvidersHandlers,
};
