/** A session branch that was created although the service never got the answer (threats.md G12). */
import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { GitBackend, GitError } from "../../../src/git/port.ts";
import { SimulatedRepositories } from "../../twins/git/repositories.ts";
import { answered, openActorsWorld } from "../../support/world/actors.ts";

describe("a branch whose answer was lost", () => {
  it.effect("is taken over by the service's next life, even if its base has moved on [G12, G11]", () =>
    Effect.gen(function* () {
      const cut = yield* Deferred.make<string>();
      const asked: string[] = [];
      const world = yield* openActorsWorld({
        git: (backend) => ({
          ...backend,
          createBranch: (repository, request) => {
            asked.push(request.commit);
            const made = backend.createBranch(repository, request);
            // It takes effect, and the service ends before it hears of it.
            return asked.length === 1
              ? Effect.andThen(made, Effect.andThen(Deferred.succeed(cut, request.commit), Effect.never))
              : made;
          },
        }),
      });
      const git = yield* GitBackend.pipe(world.inPorts);
      const repository = { projectId: world.world.projectId };
      const { actors, end } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      const commit = yield* answered(Deferred.await(cut));
      yield* end;
      expect(yield* git.branchTip(repository, id)).toBe(commit);
      const { commit: push } = yield* SimulatedRepositories.pipe(world.inPorts);
      const moved = { branch: "main", onto: commit, files: { a: "a\n" }, subject: "Move on" };
      expect(yield* push(repository, moved)).not.toBe(commit);

      yield* world.begin;
      yield* world.untilSession(id, "running");
      expect(asked).toEqual([commit, commit]);
      expect(yield* git.branchTip(repository, id)).toBe(commit);
      expect((yield* world.session(id))?.baseCommit).toBe(commit);
    }),
  );

  it.effect("fails the session that got the error, and a restart finds the branch [G12]", () =>
    Effect.gen(function* () {
      let isFirst = true;
      const world = yield* openActorsWorld({
        git: (backend) => ({
          ...backend,
          createBranch: (repository, request) =>
            Effect.suspend(() => {
              const made = backend.createBranch(repository, request);
              if (!isFirst) return made;
              isFirst = false;
              return Effect.andThen(made, new GitError({ code: "timeout", message: "no answer came" }));
            }),
        }),
      });
      const { actors } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* world.untilSession(id, "failed");
      expect((yield* world.session(id))?.failure?.code).toBe("branch_failed");
      const sandboxId = "01890000-0000-7000-8000-000000000001";
      yield* answered(actors.session(id, { type: "restart.requested", sandboxId }));
      yield* world.untilSession(id, "running");
    }),
  );
});
