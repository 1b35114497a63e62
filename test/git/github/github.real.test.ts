import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { afterAll, describe } from "vitest";
import { GitBackend } from "../../../src/git/port.ts";
import { gitConformance } from "../../conformance/git/git.ts";
import { hostedPushes } from "../../conformance/git/git-pushes.ts";
import { pullRequestConformance } from "../../conformance/git/pull-requests.ts";
import { onlyDeep } from "../../support/vitest/rings.ts";
import { makeGithubWorld } from "./github-setup.ts";

const scope = Effect.runSync(Scope.make());
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));
const world = await Effect.runPromise(Scope.provide(makeGithubWorld(), scope));

const { backend, pulls, host } = world;
const layer = Layer.merge(Layer.succeed(GitBackend, backend), hostedPushes(world.upstreams));

onlyDeep(() => {
  describe("the github backend", () => gitConformance(layer));
});

describe("a code host's pull requests", () =>
  pullRequestConformance(
    (test) => Effect.provide(test, layer),
    Effect.succeed({
      ...pulls,
      mergeThere: ({ projectId }, number) => Effect.promise(() => host.pulls.merge(projectId, number)),
      closeThere: ({ projectId }, number) => Effect.sync(() => host.pulls.close(projectId, number)),
    }),
  ));
