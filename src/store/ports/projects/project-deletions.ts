/**
 * Deleted projects: those that can still be restored, and those that are gone. One of the store's ports, see journal.ts.
 *
 *  X1 A deleted project keeps its rows and its name until its instant. Then its rows go in steps, the project's own row last.
 *     Each step can be the last one of a process: the next one goes on.
 *  X2 No row goes while a session, a sandbox or a build of the project is live.
 *  X3 With the project's own row, its id is written down for good. A directory belongs to no project if it has the id of a deleted one: a
 *     database that was restored from a backup may lack rows of projects that exist.
 *  X4 The audit record keeps its rows.
 */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";
import type { UnwantedSession } from "../people/people.ts";
import type { Project } from "./projects.ts";

/** `waits`: something of the project is live (X2). `more`: rows are left. `gone`: an earlier step, maybe of another node, was the last. */
export type Removal = "waits" | "more" | "removed" | "gone";

export class ProjectDeletions extends Context.Service<
  ProjectDeletions,
  {
    /** Deletes a project and cancels its waiting fires. One that is deleted stays as it is. Null if it does not exist. */
    readonly begin: (
      id: string,
      times: { readonly now: number; readonly deletesAt: number },
    ) => Stored<Project | null>;
    /** Makes it what it was before. Null if it is not deleted, or its instant has come. */
    readonly restore: (id: string, now: number) => Stored<Project | null>;
    /** Live sessions of deleted projects that are not about to end, at most 100. */
    readonly unwantedSessions: Stored<readonly UnwantedSession[]>;
    /** Deleted projects whose instant has come, the oldest first. */
    readonly due: (now: number) => Stored<readonly Project[]>;
    /** One small step. It does nothing to a project whose instant has not come. */
    readonly remove: (id: string, now: number) => Stored<Removal>;
    /** The ids of all projects that are gone (X3). */
    readonly gone: Stored<readonly string[]>;
  }
>()("platform/store/ProjectDeletions") {}
