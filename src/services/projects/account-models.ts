/** What the core asks of the account's own providers of models. The feature `model-providers` answers. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { AccountProvider } from "../../domain/sandbox/account-provider.ts";
import type { Stored } from "../../store/ports/journal.ts";

/** An account's providers, the oldest first. Without the feature, an account has none. */
export const AccountModels = Context.Reference<(accountId: string) => Stored<readonly AccountProvider[]>>(
  "platform/services/AccountModels",
  { defaultValue: () => () => Effect.succeed([]) },
);

/** What passed the service of one model to the account's own providers, on one day. */
export interface PassedUsage {
  /** `YYYY-MM-DD`, in UTC. */
  readonly day: string;
  /** `provider/model`. */
  readonly model: string;
  /** Tokens of the prompts, with the cached ones. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly calls: number;
  /** How many of the calls named no tokens, as if they broke off before. */
  readonly untoldCalls: number;
}

/** A project's, from `from` to `to` (`YYYY-MM-DD`), both included, newest first. Without the feature, nothing passed. */
export const PassedUsages = Context.Reference<
  (projectId: string, span: { readonly from: string; readonly to: string }) => Stored<readonly PassedUsage[]>
>("platform/services/PassedUsages", { defaultValue: () => () => Effect.succeed([]) });
