import { expect, it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { randomUUID } from "node:crypto";
import { byKind } from "../../src/git/backends.ts";
import { GitBackend, GitError } from "../../src/git/port.ts";
import type { GitCall, SmartHttp } from "../../src/git/server/smart-http.ts";
import { simulatedBackend } from "../twins/git/repositories.ts";
import type { RepositoryKind } from "../../src/git/upstream/upstreams.ts";

/** Says who was asked. */
const endpoint = (name: string): SmartHttp => {
  const answer = () => Effect.fail(new GitError({ code: "git_failed", message: name }));
  return { advertise: answer, serve: answer };
};

const two = Effect.gen(function* () {
  const build = Effect.map(Layer.build(Layer.fresh(simulatedBackend)), (made) =>
    Context.get(made, GitBackend),
  );
  const [hosted, git] = [yield* build, yield* build];
  const kinds = new Map<string, RepositoryKind>();
  const repositories = byKind(
    { kind: (id) => Effect.succeed(kinds.get(id) ?? null), find: () => Effect.succeed(null) },
    {
      hosted: { backend: hosted, endpoint: endpoint("hosted") },
      git: { backend: git, endpoint: endpoint("git") },
    },
  );
  return { hosted, git, kinds, ...repositories };
});

const upstream = { source: { kind: "git", url: "https://example.org/a.git" }, credential: null } as const;

it.live("use the backend of the repository's kind for every operation, including its creation", () =>
  Effect.gen(function* () {
    const { backend, hosted, git, kinds, endpoint: http } = yield* two;
    const [here, there] = [randomUUID(), randomUUID()];
    kinds.set(here, "hosted").set(there, "git");
    yield* backend.create({ projectId: here, importFrom: null, defaultBranch: "main" });
    yield* backend.create({ projectId: there, importFrom: null, defaultBranch: "trunk", upstream });
    expect(yield* hosted.branchTip({ projectId: here }, "main")).not.toBeNull();
    expect(yield* git.branchTip({ projectId: there }, "trunk")).not.toBeNull();
    expect(yield* backend.resolveBase({ projectId: there }, "trunk")).toMatch(/^[0-9a-f]{40}$/);
    // oxlint-disable-next-line typescript/consistent-type-assertions -- the dispatch reads the repository alone
    const call = { repository: { projectId: there } } as GitCall;
    expect((yield* Effect.flip(http.advertise(call))).message).toBe("git");
  }).pipe(Effect.scoped),
);

it.live("find no repository for an unknown project or an unknown kind", () =>
  Effect.gen(function* () {
    const { backend, kinds } = yield* two;
    const projectId = randomUUID();
    kinds.set(projectId, "github");
    for (const id of [randomUUID(), projectId]) {
      const error = yield* Effect.flip(backend.branchTip({ projectId: id }, "main"));
      expect(error.code).toBe("unknown_repository");
    }
  }).pipe(Effect.scoped),
);
