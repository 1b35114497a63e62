/** What the core asks of providers of models of accounts, projects and persons. The feature `model-providers` answers. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { AccountProvider, ModelUser, PassedUsage } from "../../domain/sandbox/account-provider.ts";
import { deliveredNames } from "../../domain/manifest/required-secrets.ts";
import { providerStandings } from "../../domain/sandbox/model.ts";
import { Secrets } from "../../store/ports/projects/secrets.ts";
import type { Stored } from "../../store/ports/journal.ts";

/** All that a session may use, the narrowest owner's first, of each the oldest first. Without the feature, the list is empty. */
export const AccountModels = Context.Reference<(user: ModelUser) => Stored<readonly AccountProvider[]>>(
  "platform/services/AccountModels",
  { defaultValue: () => () => Effect.succeed([]) },
);

/** A project's, from `from` to `to` (`YYYY-MM-DD`), both included, newest first. Without the feature, nothing passed. */
export const PassedUsages = Context.Reference<
  (projectId: string, span: { readonly from: string; readonly to: string }) => Stored<readonly PassedUsage[]>
>("platform/services/PassedUsages", { defaultValue: () => () => Effect.succeed([]) });

/** The providers of models that a session may use, with why one is not used, and the names of the project's secrets. */
export const usableModels = Effect.fnUntraced(function* (user: ModelUser) {
  const secretNames = deliveredNames((yield* (yield* Secrets).list(user.projectId)).secrets);
  const standings = providerStandings(yield* (yield* AccountModels)(user), secretNames);
  const providers = standings.flatMap(({ provider, unused }) => (unused === null ? [provider] : []));
  return { secretNames, standings, providers };
});
