import { describe } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { simulatedPulls } from "../twins/git/pulls.ts";
import { simulatedBackend } from "../twins/git/repositories.ts";
import { gitConformance } from "../conformance/git/git.ts";
import { pullRequestConformance } from "../conformance/git/pull-requests.ts";

describe("the simulated backend", () => gitConformance(simulatedBackend));

describe("simulated pull requests", () =>
  pullRequestConformance((test) => Effect.provide(test, simulatedBackend), simulatedPulls));
