/** A backend whose operations are measured, by operation and outcome. Repositories are not named. */
import * as Exit from "effect/Exit";
import type * as Effect from "effect/Effect";
import { timed, type MeasuresApi } from "../telemetry/port.ts";
import type { GitBackend, GitError } from "./port.ts";

/** @returns the backend itself while nothing is measured */
export const measured = (git: GitBackend["Service"], measures: MeasuresApi): GitBackend["Service"] => {
  if (!measures.isOn) return git;
  const of =
    <Args extends readonly unknown[], A>(
      operation: string,
      run: (...args: Args) => Effect.Effect<A, GitError>,
    ) =>
    (...args: Args): Effect.Effect<A, GitError> =>
      timed(measures, run(...args), (taken, exit) =>
        measures.observe("git_seconds", { operation, outcome: Exit.isSuccess(exit) ? "ok" : "error" }, taken),
      );
  return {
    create: of("create", git.create),
    checkUpstream: of("check_upstream", git.checkUpstream),
    setDefaultBranch: of("set_default_branch", git.setDefaultBranch),
    remove: of("remove", git.remove),
    resolveBase: of("resolve_base", git.resolveBase),
    branchTip: of("branch_tip", git.branchTip),
    removeOldSave: of("remove_old_save", git.removeOldSave),
    hasChanges: of("has_changes", git.hasChanges),
    branches: of("branches", git.branches),
    createBranch: of("create_branch", git.createBranch),
    commitFile: of("commit_file", git.commitFile),
    readFile: of("read_file", git.readFile),
    pack: of("pack", git.pack),
    objectIds: of("object_ids", git.objectIds),
    readTree: of("read_tree", git.readTree),
    paths: of("paths", git.paths),
    compare: of("compare", git.compare),
    diff: of("diff", git.diff),
    merge: of("merge", git.merge),
  };
};
