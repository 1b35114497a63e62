import { describe } from "@effect/vitest";
import { simulatedBackend } from "../../src/git/simulated.ts";
import { gitConformance } from "../conformance/git.ts";

describe("the simulated backend", () => gitConformance(simulatedBackend));
