/**
 * What passed the service of models, by session, day and model (`provider/model`). A call is added when it is settled (../../spend), and nothing is
 * written over. It stays when a provider is deleted.
 */
import * as Context from "effect/Context";
import type { PassedUsage } from "../../../domain/sandbox/account-provider.ts";
import type { Stored } from "../../../store/ports/journal.ts";

export type CountedUsage = Omit<PassedUsage, "day">;

export class ModelUsage extends Context.Service<
  ModelUsage,
  {
    /** A project's days from `from` to `to` (`YYYY-MM-DD`), both included, newest first; models in alphabetical order. */
    readonly days: (
      projectId: string,
      span: { readonly from: string; readonly to: string },
    ) => Stored<readonly PassedUsage[]>;
    /** A session's over all days, by model in alphabetical order. */
    readonly ofSession: (sessionId: string) => Stored<readonly CountedUsage[]>;
  }
>()("platform/model-providers/ModelUsage") {}
