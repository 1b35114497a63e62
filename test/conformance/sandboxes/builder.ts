/** The behaviour of every builder of environments (src/builder/port.ts, B1, B2 and B4), as plain effects with plain assertions. */
import assert from "node:assert/strict";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type * as Layer from "effect/Layer";
import * as Latch from "effect/Latch";
import * as Stream from "effect/Stream";
import {
  type BuildError,
  type BuildEvent,
  type BuildRequest,
  EnvironmentBuilder,
  type ImageFile,
} from "../../../src/builder/port.ts";

/** The wanted course of a build. */
export type Intention = "succeed" | "fail" | "misspell" | "hang" | "scribble";

/** One builder under test, with controls that the port lacks. */
export interface BuilderSubject<R> {
  readonly layer: Layer.Layer<EnvironmentBuilder | R, BuildError>;
  /** A request with an id and an output of its own, and otherwise the same for the same intention. */
  readonly request: (intention: Intention) => Effect.Effect<BuildRequest, never, R>;
  /** The output's image.json. Null if the output is empty. Fails if it has anything else but that and `root`. */
  readonly result: (request: BuildRequest) => Effect.Effect<ImageFile | null, never, R>;
  /** Processes, mounts and files of a build that still exist, apart from its output. */
  readonly leftovers: (request: BuildRequest) => Effect.Effect<readonly string[], never, R>;
}

export interface BuilderCase {
  readonly name: string;
  readonly run: Effect.Effect<void, unknown>;
}

interface Body<R> {
  readonly name: string;
  readonly body: Effect.Effect<void, unknown, EnvironmentBuilder | R>;
}

/** Runs a build to its end. */
export const buildAll = Effect.fnUntraced(function* (request: BuildRequest) {
  const builder = yield* EnvironmentBuilder;
  return yield* Stream.runCollect(builder.build(request));
});

// eslint-disable-next-line no-control-regex -- the point
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/;

/** The command of `fail` is the third step, on line 4, and ends with 3. The second line of `misspell` is no instruction. */
const failures = <R>(subject: BuilderSubject<R>): readonly Body<R>[] => [
  {
    name: "names step, line, exit code and output of a step that failed, and leaves the output empty",
    body: Effect.gen(function* () {
      const request = yield* subject.request("fail");
      const { failure } = yield* Effect.flip(buildAll(request));
      assert.ok(failure.code === "step_failed", JSON.stringify(failure));
      assert.deepEqual([failure.step, failure.line, failure.exit], [3, 4, 3]);
      assert.match(failure.tail, /before the failure/);
      assert.equal(yield* subject.result(request), null);
      assert.deepEqual(yield* subject.leftovers(request), []);
    }),
  },
  {
    name: "names the line of a Dockerfile that is none",
    body: Effect.gen(function* () {
      const request = yield* subject.request("misspell");
      const { failure } = yield* Effect.flip(buildAll(request));
      assert.ok(failure.code === "syntax", JSON.stringify(failure));
      assert.equal(failure.line, 2);
      assert.equal(yield* subject.result(request), null);
    }),
  },
];

const endings = <R>(subject: BuilderSubject<R>): readonly Body<R>[] => [
  {
    name: "tells of each step, and at last of the image that is in the output",
    body: Effect.gen(function* () {
      const request = yield* subject.request("succeed");
      const events = yield* buildAll(request);
      const steps = events.filter((event) => event.kind === "step").map(({ step }) => step);
      assert.deepEqual(
        steps,
        steps.map((_, index) => index + 1),
      );
      assert.ok(steps.length > 0);
      const last = events.at(-1);
      assert.ok(last?.kind === "built");
      assert.equal(events.filter(({ kind }) => kind === "built").length, 1);
      const image = yield* subject.result(request);
      assert.deepEqual(image, { version: 1, digest: last.digest, ...last.config });
      assert.match(last.digest, /^sha256:[0-9a-f]{64}$/);
      assert.deepEqual(yield* subject.leftovers(request), []);
    }),
  },
  {
    name: "gives the same digest for the same inputs",
    body: Effect.gen(function* () {
      const one = yield* subject.request("succeed");
      const other = yield* subject.request("succeed");
      yield* buildAll(one);
      yield* buildAll(other);
      const [first, second] = [yield* subject.result(one), yield* subject.result(other)];
      assert.equal(first?.digest, second?.digest);
    }),
  },
  {
    name: "ends an interrupted build without a trace, and builds the next one",
    body: Effect.gen(function* () {
      const builder = yield* EnvironmentBuilder;
      const request = yield* subject.request("hang");
      const begun = yield* Latch.make(false);
      const seen = (event: BuildEvent) =>
        event.kind === "log" && event.text.includes("hanging") ? begun.open : Effect.void;
      const building = yield* Effect.forkChild(Stream.runForEach(builder.build(request), seen));
      // A build that ends by itself fails the case.
      yield* Effect.raceFirst(begun.await, Effect.andThen(Fiber.join(building), Effect.die("it ended")));
      yield* Fiber.interrupt(building);
      assert.equal(yield* subject.result(request), null);
      assert.deepEqual(yield* subject.leftovers(request), []);
      yield* buildAll(yield* subject.request("succeed"));
    }),
  },
  {
    name: "gives plain text, whatever a step writes",
    body: Effect.gen(function* () {
      const events = yield* buildAll(yield* subject.request("scribble"));
      const text = events.map((event) => (event.kind === "log" ? event.text : "")).join("");
      assert.match(text, /scribbled/);
      assert.doesNotMatch(text, CONTROL);
    }),
  },
  {
    name: "can be used here, says doctor",
    body: Effect.gen(function* () {
      const { usable, problem } = yield* (yield* EnvironmentBuilder).doctor;
      assert.deepEqual({ usable, problem }, { usable: true, problem: null });
    }),
  },
];

/** The suite for one builder. */
export const builderCases = <R>(subject: BuilderSubject<R>): readonly BuilderCase[] =>
  [...endings(subject), ...failures(subject)].map(({ name, body }) => ({
    name,
    run: Effect.provide(body, subject.layer),
  }));
