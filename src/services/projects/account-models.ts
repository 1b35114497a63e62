/** What the core asks of providers of models of accounts, projects and persons. The feature `model-providers` answers. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { AccountProvider, ModelUser, PassedUsage } from "../../domain/sandbox/account-provider.ts";
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
