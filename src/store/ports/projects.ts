/** Projects: their settings, their manifest in force, and the cursors of their cron triggers. */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { BadCursor } from "./errors.ts";
import type { Stored } from "./journal.ts";
import type {
  GoodManifest,
  ManifestFailure,
  NewProject,
  Page,
  PageRequest,
  Project,
  ProjectState,
  ProjectUpdate,
  TriggerCursor,
  TriggerKey,
} from "./records.ts";

export class Projects extends Context.Service<
  Projects,
  {
    readonly create: (project: NewProject) => Stored<Project>;
    readonly get: (id: string) => Stored<Project | null>;
    /** The project's sealed credential; null where it has none. */
    readonly credential: (id: string) => Stored<Uint8Array | null>;
    /** Puts another sealed credential, or none, in its place; null where there is no such project. */
    readonly replaceCredential: (
      id: string,
      credential: Uint8Array | null,
      now: number,
    ) => Stored<Project | null>;
    readonly list: (
      accountId: string,
      request: PageRequest & { readonly onlyId: string | null },
    ) => Stored<Page<Project>, BadCursor>;
    readonly update: (id: string, change: ProjectUpdate, now: number) => Stored<Project | null>;
    /** Those of these ids that no project has. */
    readonly unheld: (ids: readonly string[]) => Stored<readonly string[]>;
    /** What the last reading of the manifest gave; `good` only of a reading that parsed (the last good one stays). */
    readonly recordManifest: (
      id: string,
      reading: {
        readonly commit: string | null;
        readonly good: GoodManifest | null;
        readonly failure: ManifestFailure | null;
        readonly now: number;
      },
    ) => Stored<void>;
    /** What the triggers of these projects go by; of archived ones too. */
    readonly states: (ids: readonly string[]) => Stored<readonly ProjectState[]>;
    /**
     * Ids and versions of the projects that changed since an earlier look, all of them for `since: null`. Some may come
     * again that were seen before; none is missed, whenever its change is committed.
     */
    readonly changedSince: (since: string | null) => Stored<{
      readonly changed: readonly { readonly id: string; readonly version: number }[];
      /** For the next look. */
      readonly since: string;
    }>;
    /** Completes when a project may have changed (a commit's signal; lost ones are covered by the reader's poll). */
    readonly changed: Effect.Effect<void>;
    /**
     * Sees to it that exactly these cron triggers of the project have a cursor: one that is new, or of another schedule,
     * starts at `now`. Fenced by the project's version: null where it is another by now, and nothing is written.
     */
    readonly keepCursors: (request: {
      readonly projectId: string;
      readonly projectVersion: number;
      readonly schedules: ReadonlyMap<string, string>;
      readonly now: number;
    }) => Stored<readonly TriggerCursor[] | null>;
    /** The cursors of these cron triggers, as far as they have one, in any order. */
    readonly cursors: (of: readonly TriggerKey[]) => Stored<readonly (TriggerCursor & TriggerKey)[]>;
    /** last_fired_at by slug (spec 2.3). */
    readonly lastFired: (id: string) => Stored<ReadonlyMap<string, number>>;
  }
>()("platform/store/Projects") {}
