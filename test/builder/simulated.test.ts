/** The conformance suite over the twin of builders. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect, it } from "vitest";
import { BuildError, type BuildRequest, type ImageFile } from "../../src/builder/port.ts";
import { simulatedBuilder, SimulatedBuilds, type SimulatedPlan } from "../twins/builder/builder.ts";
import {
  builderCases,
  type BuilderSubject,
  buildAll,
  type Intention,
} from "../conformance/sandboxes/builder.ts";

const outputs = new Map<string, ImageFile>();

const requestOf = (changes: Partial<BuildRequest> = {}): BuildRequest => ({
  id: randomUUID(),
  contextDirectory: "/context",
  dockerfile: "Dockerfile",
  target: null,
  args: {},
  secrets: {},
  layerStore: "project",
  egressAllow: [],
  pull: "missing",
  limits: {
    seconds: 60,
    memoryBytes: 1,
    diskBytes: 1,
    processes: 1,
    logBytes: 1,
    imageBytes: 1,
    imageFiles: 1,
  },
  output: `/output/${randomUUID()}`,
  ...changes,
});

const PLANS: Readonly<Record<Intention, SimulatedPlan>> = {
  succeed: { outcome: { kind: "built" } },
  fail: {
    outcome: {
      kind: "failed",
      failure: { code: "step_failed", step: 3, line: 4, exit: 3, tail: "before the failure\n" },
    },
  },
  misspell: {
    outcome: { kind: "failed", failure: { code: "syntax", line: 2, problem: "unknown instruction: FOO" } },
  },
  hang: { outcome: { kind: "hang" }, events: [{ kind: "log", text: "hanging\n" }] },
  scribble: { outcome: { kind: "built" }, events: [{ kind: "log", text: "scribbled\n" }] },
};

const subject: BuilderSubject<SimulatedBuilds> = {
  layer: simulatedBuilder({
    write: (output, image) => Effect.sync(() => void outputs.set(output, image)),
  }),
  request: Effect.fnUntraced(function* (intention) {
    const request = requestOf();
    yield* (yield* SimulatedBuilds).plan(request.id, PLANS[intention]);
    return request;
  }),
  result: ({ output }) => Effect.sync(() => outputs.get(output) ?? null),
  leftovers: ({ id }) =>
    Effect.gen(function* () {
      return (yield* (yield* SimulatedBuilds).running).has(id) ? [id] : [];
    }),
};

describe("the simulated builder", () => {
  for (const { name, run } of builderCases(subject)) it(name, () => Effect.runPromise(run));

  it("gives other inputs another digest", () =>
    Effect.gen(function* () {
      const [one, other] = [requestOf(), requestOf({ args: { VERSION: "2" } })];
      yield* buildAll(one);
      yield* buildAll(other);
      expect(outputs.get(one.output)?.digest).not.toBe(outputs.get(other.output)?.digest);
      expect(yield* (yield* SimulatedBuilds).requests).toEqual([one, other]);
    }).pipe(Effect.provide(subject.layer), Effect.runPromise));

  it("says in one sentence why a build failed", () => {
    const failure = PLANS.fail.outcome.kind === "failed" ? PLANS.fail.outcome.failure : null;
    if (failure === null) throw new Error("the plan is a failure");
    expect(new BuildError({ failure }).message).toBe("step 3 on line 4 failed with exit code 3");
  });
});
