/** Events as clients read them, in commit order (api.md 1 "Live data"). */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { Stored } from "./journal.ts";
import type { ProjectReader } from "./projects/projects.ts";

/** An event row (api.md 3 "Events"); `type` e.g. `session.status`. */
export interface StoredEvent {
  readonly cursor: string;
  readonly type: string;
  readonly at: number;
  readonly projectId: string;
  readonly sessionId: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An event without its place in the commit order. */
export type NewEvent = Omit<StoredEvent, "cursor">;

/** How long event rows are kept, ms, and how many for each project (api.md 1 "Live data"). */
export const EVENTS_KEPT_MS = 24 * 60 * 60 * 1000;
export const EVENTS_KEPT_PER_PROJECT = 10_000;

/** The same for events that are news (domain/service/news.ts). Readers of the stream get them for 24 h as all others. */
export const NEWS_KEPT_MS = 30 * EVENTS_KEPT_MS;
export const NEWS_KEPT_PER_PROJECT = 2_000;

/** Of which events: a project's, a session's, or those of all projects that a reader sees when they are read. */
export type EventScope =
  | { readonly projectId: string; readonly sessionId: string | null }
  | { readonly reader: ProjectReader };

export class Events extends Context.Service<
  Events,
  {
    /**
     * Events after a cursor in commit order (api.md 1 "Live data"): no event appears later before one that was already
     * returned. `cursor: null` starts at the end. `reset`: the cursor is older than the kept events. `isHeldBack`: an
     * event is committed that may not be read yet, because an older transaction could still put one before it.
     */
    readonly after: (
      request: EventScope & {
        readonly cursor: string | null;
        readonly limit: number;
      },
    ) => Stored<{
      readonly events: readonly StoredEvent[];
      readonly cursor: string;
      readonly reset: boolean;
      readonly isHeldBack: boolean;
    }>;
    /** Whether a cursor that `after` or an event gave is behind another one. */
    readonly isLater: (cursor: string, than: string) => boolean;
    /**
     * Completes when an event may have been appended: at a commit's signal. The reader's poll makes up for lost
     * signals. Null means an event of any project.
     */
    readonly changed: (projectId: string | null) => Effect.Effect<void>;
    /**
     * Removes rows beyond 24 h or 10,000 for each project, and news beyond 30 days or 2,000, in small steps. Rows that an enabled receiver
     * has yet to read stay (features/notifications/ports/outbound-webhooks.ts).
     */
    readonly prune: (now: number) => Stored<void>;
  }
>()("platform/store/Events") {}
