/** A backend whose operations are measured, by operation and outcome. Repositories are not named. */
import * as Exit from "effect/Exit";
import type * as Effect from "effect/Effect";
import { measure, type MeasuresApi } from "../telemetry/port.ts";
import type { GitBackend, GitError } from "./port.ts";

/** @returns the backend itself while nothing is measured */
export const measureGit = (git: GitBackend["Service"], measures: MeasuresApi): GitBackend["Service"] => {
  if (!measures.isOn) return git;
  const measureCall =
    <Args extends readonly unknown[], A>(
      operation: string,
      run: (...args: Args) => Effect.Effect<A, GitError>,
    ) =>
    (...args: Args): Effect.Effect<A, GitError> =>
      measure(measures, run(...args), (durationSeconds, exit) =>
        measures.observe(
          "git_seconds",
          { operation, outcome: Exit.isSuccess(exit) ? "ok" : "error" },
          durationSeconds,
        ),
      );
  return {
    create: measureCall("create", git.create),
    checkUpstream: measureCall("check_upstream", git.checkUpstream),
    setDefaultBranch: measureCall("set_default_branch", git.setDefaultBranch),
    remove: measureCall("remove", git.remove),
    resolveBase: measureCall("resolve_base", git.resolveBase),
    branchTip: measureCall("branch_tip", git.branchTip),
    removeOldSave: measureCall("remove_old_save", git.removeOldSave),
    hasChanges: measureCall("has_changes", git.hasChanges),
    branches: measureCall("branches", git.branches),
    createBranch: measureCall("create_branch", git.createBranch),
    commitFile: measureCall("commit_file", git.commitFile),
    readFile: measureCall("read_file", git.readFile),
    pack: measureCall("pack", git.pack),
    objectIds: measureCall("object_ids", git.objectIds),
    readTree: measureCall("read_tree", git.readTree),
    paths: measureCall("paths", git.paths),
    compare: measureCall("compare", git.compare),
    diff: measureCall("diff", git.diff),
    merge: measureCall("merge", git.merge),
  };
};
