/** Adds commits and tags to a hosted repository for the suite, with git itself, in place of pushes. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { GitError } from "../../../src/git/port.ts";
import { existingRepository } from "../../../src/git/repository/repository-path.ts";
import { runGit } from "../../../src/git/run.ts";
import {
  type SimulatedCommit,
  type SimulatedEntry,
  SimulatedRepositories,
} from "../../twins/git/repositories.ts";

const block = (text: string): string => `data ${Buffer.byteLength(text)}\n${text}\n`;

const change = ([name, entry]: [string, SimulatedEntry]): string => {
  const path = JSON.stringify(name); // a line break is written as in C
  if (typeof entry === "string") return `M 100644 inline ${path}\n${block(entry)}`;
  if ("executable" in entry) return `M 100755 inline ${path}\n${block(entry.executable)}`;
  if ("symlink" in entry) return `M 120000 inline ${path}\n${block(entry.symlink)}`;
  return `M 160000 ${entry.submodule} ${path}\n`;
};

/** A commit in the language of `git fast-import`. */
const script = ({ branch, onto, files, subject }: SimulatedCommit): string =>
  [
    `reset refs/heads/${branch}\n\n`,
    `commit refs/heads/${branch}\n`,
    "committer Tester <tester@example.org> 946684800 +0000\n",
    block(subject),
    onto === null ? "" : `from ${onto}\n`,
    "deleteall\n",
    ...Object.entries(files).map(change),
  ].join("");

/** Commits and tags for the repositories below `directory`. */
export const hostedPushes = (directory: string): Layer.Layer<SimulatedRepositories> =>
  Layer.succeed(
    SimulatedRepositories,
    SimulatedRepositories.of({
      commit: (repository, request) =>
        Effect.gen(function* (): Effect.fn.Return<string, GitError> {
          const path = yield* existingRepository(directory, repository);
          yield* runGit({
            repository: path,
            args: ["fast-import", "--quiet", "--force"],
            stdin: script(request),
          });
          const { stdout } = yield* runGit({
            repository: path,
            args: ["rev-parse", "--verify", `refs/heads/${request.branch}`],
          });
          return stdout.toString("utf8").trim();
        }),
      tag: (repository, name, commit) =>
        Effect.gen(function* (): Effect.fn.Return<void, GitError> {
          const path = yield* existingRepository(directory, repository);
          // Annotated, so that it must be peeled.
          const identity = "GIT_COMMITTER";
          yield* runGit({
            repository: path,
            args: ["tag", "--annotate", "--message", name, name, commit],
            environment: { [`${identity}_NAME`]: "Tester", [`${identity}_EMAIL`]: "tester@example.org" },
          });
        }),
    }),
  );
