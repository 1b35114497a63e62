/** What the core asks of the account's own providers of models. The feature `model-providers` answers. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { AccountProvider, PassedUsage } from "../../domain/sandbox/account-provider.ts";
import type { Stored } from "../../store/ports/journal.ts";

/** An account's providers, the oldest first. Without the feature, an account has none. */
export const AccountModels = Context.Reference<(accountId: string) => Stored<readonly AccountProvider[]>>(
  "platform/services/AccountModels",
  { defaultValue: () => () => Effect.succeed([]) },
);

/** A project's, from `from` to `to` (`YYYY-MM-DD`), both included, newest first. Without the feature, nothing passed. */
export const PassedUsages = Context.Reference<
  (projectId: string, span: { readonly from: string; readonly to: string }) => Stored<readonly PassedUsage[]>
>("platform/services/PassedUsages", { defaultValue: () => () => Effect.succeed([]) });
