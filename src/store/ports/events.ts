/** Events as clients read them, in commit order (api.md 1 "Live data"). */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { Stored } from "./journal.ts";
import type { StoredEvent } from "./records.ts";

/** Event rows are kept this long, ms, and this many a project (api.md 1 "Live data"). */
export const EVENTS_KEPT_MS = 24 * 60 * 60 * 1000;
export const EVENTS_KEPT_PER_PROJECT = 10_000;

export class Events extends Context.Service<
  Events,
  {
    /**
     * Events after a cursor in commit order (api.md 1 "Live data"): none can appear behind one already returned.
     * `cursor: null` starts at the end. `reset`: the cursor is older than what is kept.
     */
    readonly after: (request: {
      readonly projectId: string;
      readonly sessionId: string | null;
      readonly cursor: string | null;
      readonly limit: number;
    }) => Stored<{
      readonly events: readonly StoredEvent[];
      readonly cursor: string;
      readonly reset: boolean;
    }>;
    /** Completes when something may have been appended (a commit's signal; lost ones are covered by the reader's poll). */
    readonly changed: (projectId: string) => Effect.Effect<void>;
    /** Removes what is over 24 h or 10,000 a project, in small steps. */
    readonly prune: (now: number) => Stored<void>;
  }
>()("platform/store/Events") {}
