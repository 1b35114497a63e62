import { describe } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { simulatedPulls } from "../../src/git/simulated-pulls.ts";
import { simulatedBackend } from "../../src/git/simulated.ts";
import { gitConformance } from "../conformance/git.ts";
import { pullRequestConformance } from "../conformance/pull-requests.ts";

describe("the simulated backend", () => gitConformance(simulatedBackend));

describe("simulated pull requests", () =>
  pullRequestConformance((test) => Effect.provide(test, simulatedBackend), simulatedPulls));
