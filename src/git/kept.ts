/**
 * The port to what a node's directories hold of repositories whose project has no row. A repository is made before its
 * project's row is written, and whoever dies in between leaves it to nobody (duties/unclaimed.ts finds those).
 *
 *  K1 A hosted repository is the only copy of its work. It bears a mark from before it has its name until its project's
 *     row is written, and none that bears no mark is ever told: a database that was put back, or another one, has fewer
 *     rows than there are repositories.
 *  K2 A mirror is a copy (mirror.ts, B1): each is told, and it is known by the rows whose it is.
 *  K3 None is told before it has stood for `ageMs`: a row whose writer never heard of its commit is there by then.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { GitError, Repository } from "./port.ts";

export interface KeptHere {
  /** Projects whose repositories may be nobody's. */
  readonly unclaimed: (ageMs: number) => Effect.Effect<readonly string[]>;
  /** The project has its row. */
  readonly claim: (repository: Repository) => Effect.Effect<void, GitError>;
  readonly remove: (repository: Repository) => Effect.Effect<void, GitError>;
}

/** One for each directory of this node's. */
export const KeptRepositories = Context.Reference<readonly KeptHere[]>("platform/git/KeptRepositories", {
  defaultValue: () => [],
});
