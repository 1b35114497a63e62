/**
 * What a project's agents used, by day and model: `Conversations.note` adds it in its own transaction. It stays when
 * sessions are deleted. Invariant: while no session is deleted, the rows of a project add up to the sums of its
 * conversations.
 */
import * as Context from "effect/Context";
import type { Usage } from "../../../domain/conversation/conversation.ts";
import type { DayOfModel } from "../../../domain/conversation/usage.ts";
import type { Stored } from "../journal.ts";

/** How many models of a project have a row of their own a day. Sandboxes name models; a hostile one could name many. */
export const MODELS_PER_DAY_MAX = 50;
/** The same for a session, of the calls that passed the service. */
export const COUNTED_MODELS_MAX = 50;
/** Stands for the models beyond these numbers. */
export const OTHER_MODELS = "other";
/** Stands for a model that the runtime did not name. */
export const UNKNOWN_MODEL = "unknown";

/** What one model used on one day. */
export type DayUsage = DayOfModel;

export class ProjectUsage extends Context.Service<
  ProjectUsage,
  {
    /** The days from `from` to `to`, both included, newest first; a day's models in alphabetical order. */
    readonly days: (
      projectId: string,
      span: { readonly from: string; readonly to: string },
    ) => Stored<readonly DayUsage[]>;
    /** The sums of the account's projects that used anything, over all days. */
    readonly totals: (
      accountId: string,
    ) => Stored<readonly { readonly projectId: string; readonly usage: Usage }[]>;
  }
>()("platform/store/ProjectUsage") {}
