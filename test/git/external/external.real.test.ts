import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { afterAll, describe } from "vitest";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { GitBackend } from "../../../src/git/port.ts";
import { gitConformance } from "../../conformance/git/git.ts";
import { hostedPushes } from "../../conformance/git/git-pushes.ts";
import { isDeep } from "../../support/vitest/rings.ts";
import { makeExternalWorld } from "./external-setup.ts";

const scope = Effect.runSync(Scope.make());
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));
const world = await Effect.runPromise(Scope.provide(makeExternalWorld(), scope));

describe("the git backend", () => {
  gitConformance(
    Layer.merge(Layer.succeed(GitBackend, world.backend), hostedPushes(world.upstreams)),
    !isDeep,
  );
});
