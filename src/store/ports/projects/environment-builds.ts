/** The ledger of builds: each build of a project's environment, its actor's memory, and its log. */
import * as Context from "effect/Context";
import type { BuildBase } from "../../../domain/environment/base-image.ts";
import type { BuildFailure } from "../../../domain/environment/build-failure.ts";
import type { BuildSource } from "../../../domain/environment/environment-source.ts";
import type {
  BuiltImage,
  EnvironmentBuildCommand,
  EnvironmentBuildEvent,
  EnvironmentBuildSnapshot,
  EnvironmentBuildState,
} from "../../../machines/environment-build.ts";
import type { BadCursor } from "../errors.ts";
import type { Memory, Stored, UnsettledActor } from "../journal.ts";
import type { Page, PageRequest } from "../page.ts";

/** How many builds of a project are kept on each node, beside those in use. */
export const BUILDS_KEPT = 50;
/** The log of one build that is kept, in bytes of UTF-8. Later output is not stored. */
export const BUILD_LOG_BYTES = 4 * 1024 * 1024;

/** Why a build was begun: the manifest changed, a session needs it, somebody asked, or its base images may be old. */
export type BuildCause = "manifest" | "session" | "asked" | "refresh";

/** The step at which a build is, as the builder reported it last. */
export interface BuildStep {
  /** Counts from 1 over all stages. */
  readonly step: number;
  /** The line of the Dockerfile. */
  readonly line: number;
  readonly instruction: string;
}

export interface EnvironmentBuild {
  readonly id: string;
  readonly projectId: string;
  /** The node that builds it, and has its image. */
  readonly nodeId: string;
  readonly source: BuildSource;
  readonly cause: BuildCause;
  /** The user who asked for it. Null for other causes. */
  readonly requestedBy: string | null;
  readonly status: EnvironmentBuildState;
  readonly tries: number;
  readonly step: BuildStep | null;
  /** Empty until they were looked up, and for a Dockerfile without a base image. */
  readonly bases: readonly BuildBase[];
  readonly image: BuiltImage | null;
  readonly failure: BuildFailure | null;
  readonly createdAt: number;
  /** When it was last begun, ms. Null while it waits for its place. */
  readonly begunAt: number | null;
  readonly endedAt: number | null;
}

/** A piece of a build's log. Pieces count from 1, without gaps. */
export interface LogPiece {
  readonly number: number;
  readonly text: string;
}

export type NewBuild = Pick<
  EnvironmentBuild,
  "id" | "projectId" | "nodeId" | "source" | "cause" | "requestedBy"
> & { readonly now: number };

export class EnvironmentBuilds extends Context.Service<
  EnvironmentBuilds,
  {
    readonly memory: Memory<EnvironmentBuildSnapshot, EnvironmentBuildEvent, EnvironmentBuildCommand>;
    readonly unsettled: Stored<readonly UnsettledActor[]>;
    /**
     * Opens a build with its actor's first snapshot and commands. If a build of the same project, key and node is not
     * over, that one is returned and nothing is written. @returns null if the project does not exist
     */
    readonly open: (
      build: NewBuild,
    ) => Stored<{ readonly build: EnvironmentBuild; readonly isNew: boolean } | null>;
    readonly get: (id: string) => Stored<EnvironmentBuild | null>;
    /** The newest build of this key on this node, in whatever state. Without a node: on any. */
    readonly newest: (of: {
      readonly projectId: string;
      readonly nodeId?: string;
      readonly key: string;
    }) => Stored<EnvironmentBuild | null>;
    /** The project's ready builds on this node, newest first, at most `limit`. */
    readonly ready: (of: {
      readonly projectId: string;
      readonly nodeId: string;
      readonly limit: number;
    }) => Stored<readonly EnvironmentBuild[]>;
    /** The newest ready build of each project on this node that still has its image. */
    readonly newestReady: (nodeId: string) => Stored<readonly EnvironmentBuild[]>;
    /** A project's builds on all nodes, newest first. */
    readonly list: (projectId: string, request: PageRequest) => Stored<Page<EnvironmentBuild>, BadCursor>;
    /** Records the step that begins. A build that is over stays as it is. */
    readonly noteStep: (id: string, step: BuildStep) => Stored<void>;
    /** Records from which tags the build is made. A build that is over stays as it is. */
    readonly noteBases: (id: string, bases: readonly BuildBase[]) => Stored<void>;
    /**
     * Adds a piece to the log, behind the last one. Beyond BUILD_LOG_BYTES the log gets one last piece that says so, and
     * nothing more. A build that does not exist gets none.
     */
    readonly appendLog: (id: string, text: string) => Stored<void>;
    /** Removes the log of former tries. */
    readonly clearLog: (id: string) => Stored<void>;
    /** Pieces behind a number, in their order, at most `limit`. */
    readonly log: (
      id: string,
      request: { readonly after: number; readonly limit: number },
    ) => Stored<readonly LogPiece[]>;
    /**
     * Builds whose images must stay on a node: a sandbox that is provisioning or active uses them, or they are the newest
     * ready ones of their projects.
     */
    readonly inUse: (nodeId: string) => Stored<ReadonlySet<string>>;
    /** The ids among these that no build has. */
    readonly unheld: (ids: readonly string[]) => Stored<readonly string[]>;
    /** Marks ready builds whose image was removed. They do not count in `ready` any more. */
    readonly forgetImages: (ids: readonly string[]) => Stored<void>;
    /**
     * Removes the oldest builds that are over, beyond BUILDS_KEPT of each project and node. It leaves those that a
     * sandbox uses, that have commands, or whose image is on the node: `forgetImages` comes first.
     */
    readonly prune: Stored<void>;
  }
>()("platform/store/EnvironmentBuilds") {}
