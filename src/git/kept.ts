/**
 * The port to repositories in a node's directories whose project has no row. A repository is created before its
 * project's row is written, so a crash in between leaves it without an owner (duties/unclaimed.ts finds these).
 *
 *  K1 A hosted repository is the only copy of its work. It carries a mark from before it has its name until its
 *     project's row is written. A repository without the mark is never reported: a restored or different database has
 *     fewer rows than there are repositories.
 *  K2 A mirror is a copy (mirror.ts, B1). Every mirror is reported, and the rows decide which ones are in use.
 *  K3 No repository is reported before it is `ageMs` old. By then its row exists, even if the writer never learned of
 *     its commit.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { GitError, Repository } from "./port.ts";

export interface KeptHere {
  /** Projects whose repositories may have no owner. */
  readonly unclaimed: (ageMs: number) => Effect.Effect<readonly string[]>;
  /** The project has its row: removes the mark. */
  readonly claim: (repository: Repository) => Effect.Effect<void, GitError>;
  readonly remove: (repository: Repository) => Effect.Effect<void, GitError>;
}

/** One for each of this node's directories. */
export const KeptRepositories = Context.Reference<readonly KeptHere[]>("platform/git/KeptRepositories", {
  defaultValue: () => [],
});
