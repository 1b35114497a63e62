/** Commits that the platform makes for a person, in every git backend (src/git/port.ts). A part of the suite in git.ts. */
import { expect } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { randomUUID } from "node:crypto";
import { GitBackend, type GitError, type Repository } from "../../../src/git/port.ts";
import { SimulatedRepositories } from "../../twins/git/repositories.ts";

type Test = Effect.Effect<void, unknown, GitBackend | SimulatedRepositories>;

const AT = Date.UTC(2026, 10, 20, 12);
const AUTHOR = { name: "Mona Lisa", email: "mona@platform.invalid" };

export const checkFileCommits = (live: (name: string, test: () => Test) => void): void => {
  live("commits one file of the root on a new branch, as its author, and moves nothing else", () =>
    Effect.gen(function* () {
      const backend = yield* GitBackend;
      const pushes = yield* SimulatedRepositories;
      const repository: Repository = { projectId: randomUUID() };
      yield* backend.create({ ...repository, importFrom: null, defaultBranch: "main" });
      const tip = yield* pushes.commit(repository, {
        branch: "main",
        onto: yield* backend.resolveBase(repository, "main"),
        files: { "ä.md": "ä\n", "docs/platform.toml": "inner\n", "platform.toml": "old\n", z: "z\n" },
        subject: "Begin",
      });
      const request = {
        branch: "add-trigger",
        parent: tip,
        file: "platform.toml",
        content: "new\n",
        message: "Add a trigger\n\nIt runs each night.\n",
        author: AUTHOR,
        at: AT,
      };
      const commit = yield* backend.commitFile(repository, request);
      const tipOf = (branch: string) => backend.branchTip(repository, branch);
      expect([yield* tipOf("add-trigger"), yield* tipOf("main")]).toEqual([commit, tip]);
      const compared = yield* backend.compare(repository, { base: "main", head: "add-trigger" });
      expect(compared).toMatchObject({
        filesChanged: [{ path: "platform.toml", additions: 1, deletions: 1 }],
        mergeable: true,
      });
      expect(compared.commits).toEqual([
        {
          sha: commit,
          subject: "Add a trigger",
          authorName: AUTHOR.name,
          committedAt: new Date(AT).toISOString(),
        },
      ]);
      const bytes = yield* backend.readFile(repository, { commit, path: "ä.md", maxBytes: 100 });
      expect(Buffer.from(bytes ?? []).toString()).toBe("ä\n");

      const codeOf = (wish: Partial<typeof request>) =>
        Effect.map(
          Effect.flip(backend.commitFile(repository, { ...request, ...wish })),
          (error: GitError) => error.code,
        );
      expect(yield* codeOf({ content: "newer\n" })).toBe("branch_conflict");
      expect(yield* codeOf({ branch: "other", parent: "f".repeat(40) })).toBe("unknown_ref");
      expect(yield* tipOf("add-trigger")).toBe(commit);
      expect(yield* tipOf("other")).toBeNull();
    }),
  );
};
