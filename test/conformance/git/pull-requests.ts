/** The behaviour of every implementation of pull requests (src/git/pull-requests.ts). */
import { expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { randomUUID } from "node:crypto";
import { GitBackend, type GitError, type Repository } from "../../../src/git/port.ts";
import type { SimulatedPulls } from "../../twins/git/pulls.ts";
import { SimulatedRepositories } from "../../twins/git/repositories.ts";

type World = GitBackend | SimulatedRepositories;

/** A repository with `work` one commit ahead of `main`. */
const scene = Effect.gen(function* () {
  const backend = yield* GitBackend;
  const { commit } = yield* SimulatedRepositories;
  const repository: Repository = { projectId: randomUUID() };
  yield* backend.create({ ...repository, importFrom: null, defaultBranch: "main" });
  const tip = yield* backend.resolveBase(repository, "main");
  const write = (onto: string, text: string) =>
    commit(repository, { branch: "work", onto, files: { a: text }, subject: "Work" });
  const head = yield* write(tip, "a\n");
  return { backend, repository, tip, head, write };
});

const request = { headRef: "work", baseRef: "main", title: "Work", body: "It is done." };

/** Registers the suite. */
export const pullRequestConformance = (
  run: (test: Effect.Effect<void, unknown, World>) => Effect.Effect<void, unknown>,
  make: Effect.Effect<SimulatedPulls, GitError, World>,
): void => {
  const live = (name: string, test: Effect.Effect<void, unknown, World>) => it.live(name, () => run(test));

  live(
    "opens one for a branch, once, and returns it on each request",
    Effect.gen(function* () {
      const { repository, head } = yield* scene;
      const pulls = yield* make;
      const pull = yield* pulls.create(repository, request);
      expect(pull).toMatchObject({ number: 1, status: "open", head, baseRef: "main", body: "It is done." });
      expect(pull?.mergeCommit).toBeNull();
      expect(yield* pulls.create(repository, request)).toBeNull();
      expect(yield* pulls.get(repository, 1)).toEqual(pull);
      expect(yield* pulls.get(repository, 2)).toBeNull();
      expect(yield* pulls.open(repository)).toEqual([pull]);
      expect(yield* pulls.ofHead(repository, "work")).toEqual([pull]);
      expect(yield* pulls.ofHead(repository, "wor")).toEqual([]);
    }),
  );

  live(
    "opens none for a branch that does not exist, or that has no commits of its own",
    Effect.gen(function* () {
      const { backend, repository, tip } = yield* scene;
      const pulls = yield* make;
      yield* backend.createBranch(repository, { branch: "same", commit: tip });
      for (const headRef of ["nowhere", "same"])
        expect(yield* pulls.create(repository, { ...request, headRef })).toBeNull();
      expect(yield* pulls.open(repository)).toEqual([]);
    }),
  );

  live(
    "follows the branch while it is open, and not afterwards",
    Effect.gen(function* () {
      const { repository, head, write } = yield* scene;
      const pulls = yield* make;
      yield* pulls.create(repository, request);
      const next = yield* write(head, "b\n");
      expect((yield* pulls.get(repository, 1))?.head).toBe(next);
      expect(yield* pulls.close(repository, 1)).toMatchObject({ status: "closed", head: next });
      expect(yield* pulls.close(repository, 1)).toMatchObject({ status: "closed" });
      yield* write(next, "c\n");
      expect(yield* pulls.get(repository, 1)).toMatchObject({ status: "closed", head: next });
      expect(yield* pulls.open(repository)).toEqual([]);
      expect(yield* pulls.create(repository, request)).toMatchObject({ number: 2, status: "open" });
      expect((yield* pulls.ofHead(repository, "work")).map(({ number }) => number)).toEqual([2, 1]);
    }),
  );

  live(
    "shows one as merged after a merge on the host, with the previous tip of the base",
    Effect.gen(function* () {
      const { backend, repository, tip, head } = yield* scene;
      const pulls = yield* make;
      yield* pulls.create(repository, request);
      yield* pulls.mergeThere(repository, 1);
      const pull = yield* pulls.get(repository, 1);
      const commit = yield* backend.branchTip(repository, "main");
      expect(pull).toMatchObject({ status: "merged", head, mergeCommit: commit });
      expect(yield* pulls.firstParent(repository, commit ?? "")).toBe(tip);
      expect(yield* pulls.close(repository, 1)).toMatchObject({ status: "merged" });
    }),
  );

  live(
    "shows one as merged if a push brought its commits to the base",
    Effect.gen(function* () {
      const { backend, repository, head } = yield* scene;
      const pulls = yield* make;
      yield* pulls.create(repository, request);
      yield* backend.merge(repository, { branch: "main", head, message: "Merge", at: 0 });
      expect(yield* pulls.get(repository, 1)).toMatchObject({ status: "merged", head });
    }),
  );
};
