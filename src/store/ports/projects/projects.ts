/** Projects: their settings, their manifest in force, and the cursors of their cron triggers. */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { BadCursor, Taken } from "../errors.ts";
import type { Stored } from "../journal.ts";
import type { Page, PageRequest } from "../page.ts";
import type { ProjectStatus, SetProjectStatus } from "../../../domain/project/deletion.ts";
import type { DefaultRole, MergeRole } from "../../../domain/person/role.ts";
import type { BuildSource } from "../../../domain/environment/environment-source.ts";
import type { RepositorySource } from "../../../domain/repository/repository.ts";
import type { VerifyingSecret } from "./secrets.ts";

export interface Project {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly status: ProjectStatus;
  /** When it is gone, if it is deleted. */
  readonly deletesAt: number | null;
  readonly repository: RepositorySource;
  readonly defaultBranch: string;
  readonly triggersPaused: boolean;
  /** The project's creator. Sessions that a cron or webhook fire starts act for this user. */
  readonly createdBy: string;
  /** The role of the account's other people. */
  readonly defaultRole: DefaultRole | null;
  /** The lowest role that may merge a change request. */
  readonly mergeRole: MergeRole;
  /** How many people must approve a change request before it is merged. 0 to 10. */
  readonly approvalsRequired: number;
  readonly manifest: {
    readonly commit: string | null;
    readonly syncedAt: number | null;
    readonly error: string | null;
  };
  /** Rises with every change that its triggers depend on. An admission names the version on which it was decided. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type NewProject = Pick<
  Project,
  "id" | "accountId" | "name" | "repository" | "defaultBranch" | "createdBy"
> & {
  /** Whether its creator becomes its owner by a grant of her own. An owner of the account needs none. */
  readonly isGranted?: boolean;
  /** The node that has its repository (store/ports/nodes.ts). Absent: not recorded. */
  readonly nodeId?: string;
  /** The sealed credential of a repository that is kept elsewhere. */
  readonly credential?: Uint8Array;
  readonly now: number;
};

export type ProjectUpdate = Partial<
  Pick<
    Project,
    "name" | "triggersPaused" | "defaultBranch" | "defaultRole" | "mergeRole" | "approvalsRequired"
  >
> & {
  /** Has no effect on a deleted project. */
  readonly status?: SetProjectStatus;
};

/** Whose projects: all of the account (`userId` is null), or those in which a person has a role. */
export interface ProjectReader {
  readonly accountId: string;
  readonly userId: string | null;
}

/** The last reading of a manifest that parsed. Lists those agents of its triggers that have a file in its commit. */
export interface GoodManifest {
  /** Whether the repository configures a model provider in that commit. Null if that was not looked up. */
  readonly bringsModel: boolean | null;
  readonly commit: string;
  readonly text: string;
  readonly agents: readonly string[];
  /** The Dockerfile of its sandboxes. Null if it has none, or names an image. */
  readonly environment: BuildSource | null;
}

/** Why the newest manifest could not be read, and where, as far as that is known. */
export interface ManifestFailure {
  readonly message: string;
  readonly path: string | null;
  readonly line: number | null;
}

/** The instant up to which every due instant of a cron trigger's schedule has its ledger row (api.md 4). */
export interface TriggerCursor {
  readonly slug: string;
  /** Expression and zone in one text. */
  readonly schedule: string;
  readonly accountedUntil: number;
}

/** Names a trigger. */
export interface TriggerKey {
  readonly projectId: string;
  readonly slug: string;
}

/** The state of a project that its triggers depend on. The receiver and the scheduler hold it in memory. */
export interface ProjectState {
  readonly project: Project;
  /** The tier of the project's account. */
  readonly tier: string;
  readonly manifest: GoodManifest | null;
  readonly manifestFailure: ManifestFailure | null;
  readonly secrets: readonly VerifyingSecret[];
}

export class Projects extends Context.Service<
  Projects,
  {
    /** `Taken` if a project of the account has the name (domain/project/name.ts). */
    readonly create: (project: NewProject) => Stored<Project, Taken>;
    readonly get: (id: string) => Stored<Project | null>;
    /** The project's sealed credential. Null if it has none. */
    readonly credential: (id: string) => Stored<Uint8Array | null>;
    /** Replaces the sealed credential, or removes it. Null if the project does not exist. */
    readonly replaceCredential: (
      id: string,
      credential: Uint8Array | null,
      now: number,
    ) => Stored<Project | null>;
    readonly list: (
      reader: ProjectReader,
      request: PageRequest & { readonly onlyId: string | null },
    ) => Stored<Page<Project>, BadCursor>;
    /** `Taken` as for `create`. */
    readonly update: (id: string, change: ProjectUpdate, now: number) => Stored<Project | null, Taken>;
    /** The ids among these that no project has. */
    readonly unheld: (ids: readonly string[]) => Stored<readonly string[]>;
    /** Records the last reading of the manifest. `good` is set only if it parsed; otherwise the last good one stays. */
    readonly recordManifest: (
      id: string,
      reading: {
        readonly commit: string | null;
        readonly good: GoodManifest | null;
        readonly failure: ManifestFailure | null;
        readonly now: number;
      },
    ) => Stored<void>;
    /** The state of these projects that their triggers depend on, including archived projects. */
    readonly states: (ids: readonly string[]) => Stored<readonly ProjectState[]>;
    /**
     * Ids and versions of the projects that changed since an earlier look; all of them for `since: null`. A project may
     * be returned again, but none is missed, even if its change commits late.
     */
    readonly changedSince: (since: string | null) => Stored<{
      readonly changed: readonly { readonly id: string; readonly version: number }[];
      /** For the next look. */
      readonly since: string;
    }>;
    /** Completes when a project may have changed: at a commit's signal. The reader's poll makes up for lost signals. */
    readonly changed: Effect.Effect<void>;
    /**
     * Ensures that exactly these cron triggers of the project have a cursor. A trigger that is new, or has a new
     * schedule, starts at `now`. Fenced by the project's version: if that has changed, returns null and writes nothing.
     */
    readonly keepCursors: (request: {
      readonly projectId: string;
      readonly projectVersion: number;
      readonly schedules: ReadonlyMap<string, string>;
      readonly now: number;
    }) => Stored<readonly TriggerCursor[] | null>;
    /** The cursors of those of these cron triggers that have one, in any order. */
    readonly cursors: (of: readonly TriggerKey[]) => Stored<readonly (TriggerCursor & TriggerKey)[]>;
    /** last_fired_at by slug (spec 2.3). */
    readonly lastFired: (id: string) => Stored<ReadonlyMap<string, number>>;
  }
>()("platform/store/Projects") {}
