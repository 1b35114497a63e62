/** The port to what is known of a project's repository where it is kept elsewhere: its server, and what opens it. */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { RepositorySource } from "../../domain/repository.ts";
import type { Upstream } from "../../domain/repository-credential.ts";
import type { GitError } from "../port.ts";

export type RepositoryKind = RepositorySource["kind"];

export class Upstreams extends Context.Service<
  Upstreams,
  {
    /** Which backend keeps the project's repository; null where there is no such project. It never changes. */
    readonly kindOf: (projectId: string) => Effect.Effect<RepositoryKind | null, GitError>;
    /** The project's upstream with its default branch; null for a hosted repository, and where there is no such project. */
    readonly find: (
      projectId: string,
    ) => Effect.Effect<(Upstream & { readonly defaultBranch: string }) | null, GitError>;
  }
>()("platform/git/Upstreams") {}
