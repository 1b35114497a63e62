/**
 * What passed the service of models, by session, day and model (`provider/model`). A call is added when it is settled, and nothing is
 * written over. It stays when a provider is deleted.
 */
import * as Context from "effect/Context";
import type { CountedTokens, PassedUsage } from "../../../domain/sandbox/account-provider.ts";
import type { Stored } from "../../../store/ports/journal.ts";

export interface SettledCall {
  readonly sessionId: string;
  readonly projectId: string;
  readonly model: string;
  /** Null: the answer named none, as if it broke off before. */
  readonly tokens: CountedTokens | null;
  /** Tokens that the answer did not name. */
  readonly estimated: number;
  /** Billionths of a dollar. 0: the model has no known price. */
  readonly cost: number;
  readonly now: number;
}

export type CountedUsage = Omit<PassedUsage, "day">;

/** How many models of a session have a row of their own a day. Sandboxes name models; a hostile one could name many. */
export const COUNTED_MODELS_MAX = 50;

export class ModelUsage extends Context.Service<
  ModelUsage,
  {
    readonly add: (call: SettledCall) => Stored<void>;
    /** A project's days from `from` to `to` (`YYYY-MM-DD`), both included, newest first; models in alphabetical order. */
    readonly days: (
      projectId: string,
      span: { readonly from: string; readonly to: string },
    ) => Stored<readonly PassedUsage[]>;
    /** A session's over all days, by model in alphabetical order. */
    readonly ofSession: (sessionId: string) => Stored<readonly CountedUsage[]>;
  }
>()("platform/model-providers/ModelUsage") {}
