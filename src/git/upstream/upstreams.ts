/** The port to the stored upstream of a project's repository: its server, and its credential. */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { RepositorySource } from "../../domain/repository/repository.ts";
import type { Upstream } from "../../domain/repository/repository-credential.ts";
import type { GitError } from "../port.ts";

export type RepositoryKind = RepositorySource["kind"];

export class Upstreams extends Context.Service<
  Upstreams,
  {
    /** The kind of the project's repository. Null if the project does not exist. It never changes. */
    readonly kind: (projectId: string) => Effect.Effect<RepositoryKind | null, GitError>;
    /**
     * The project's upstream with its default branch. Null for a hosted repository, and if the project does not exist.
     */
    readonly find: (
      projectId: string,
    ) => Effect.Effect<(Upstream & { readonly defaultBranch: string }) | null, GitError>;
  }
>()("platform/git/Upstreams") {}
