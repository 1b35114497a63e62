import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { SandboxProvider } from "../../src/sandbox/port.ts";
import { SimulatedSandboxes, simulatedProvider } from "../../src/sandbox/simulated.ts";
import { runCase, sandboxCases, specOf } from "../conformance/sandboxes/sandbox.ts";

describe("the simulated provider", () => {
  // The cases end sandboxes from the other side, which shares the layer's state through this memo.
  let control: SimulatedSandboxes["Service"] | null = null;
  const layer = Layer.tap(simulatedProvider({ bootMs: 0 }), (context) =>
    Effect.sync(() => {
      control = Effect.runSync(Effect.provide(SimulatedSandboxes, context));
    }),
  );
  const cases = sandboxCases({
    layer,
    end: (id) => control?.end(id, { code: "exited", message: "ended by itself" }) ?? Effect.void,
    leftovers: () => Effect.succeed([]),
    image: null,
    persistent: false,
  });
  for (const one of cases) it(one.name, () => runCase(one));
});

describe("faults of the simulated provider", () => {
  const simulated = simulatedProvider({ bootMs: 5000 });

  it.effect("boots at the given time of the clock", () =>
    Effect.gen(function* () {
      const provider = yield* SandboxProvider;
      const creating = yield* Effect.forkChild(provider.create(specOf(randomUUID())), {
        startImmediately: true,
      });
      yield* TestClock.adjust(4999);
      expect(yield* provider.list).toEqual([]);
      yield* TestClock.adjust(1);
      yield* Fiber.join(creating);
      expect(yield* provider.list).toHaveLength(1);
    }).pipe(Effect.provide(simulated)),
  );

  it.effect("loses the answer of a create that took effect [R05]", () =>
    Effect.gen(function* () {
      const provider = yield* SandboxProvider;
      const { fault } = yield* SimulatedSandboxes;
      yield* fault("create", { kind: "lost", message: "connection reset" });
      const creating = yield* Effect.forkChild(Effect.exit(provider.create(specOf(randomUUID()))), {
        startImmediately: true,
      });
      yield* TestClock.adjust(5000);
      expect(Exit.isFailure(yield* Fiber.join(creating))).toBe(true);
      expect(yield* provider.list).toHaveLength(1);
    }).pipe(Effect.provide(simulated)),
  );

  it.effect("hangs, fails, is slow and ends early on request, one call each", () =>
    Effect.gen(function* () {
      const provider = yield* SandboxProvider;
      const { fault, all } = yield* SimulatedSandboxes;
      const create = (id: string) =>
        Effect.forkChild(Effect.exit(provider.create(specOf(id))), { startImmediately: true });
      const slowId = randomUUID();
      yield* fault("create", { kind: "hang" });
      yield* fault("create", { kind: "error", message: "no capacity" });
      yield* fault("create", { kind: "slow", milliseconds: 1000 });
      yield* fault("create", { kind: "exit", exit: { code: "memory_exceeded", message: "too much" } });
      const hanging = yield* create(randomUUID());
      const failing = yield* create(randomUUID());
      const slow = yield* create(slowId);
      const ending = yield* create(randomUUID());
      yield* TestClock.adjust(5000);
      expect(hanging.pollUnsafe()).toBeUndefined();
      expect(Exit.isFailure(yield* Fiber.join(failing))).toBe(true);
      expect(slow.pollUnsafe()).toBeUndefined();
      yield* Fiber.join(ending);
      yield* TestClock.adjust(1000);
      yield* Fiber.join(slow);
      expect((yield* all).get(slowId)?.startedAt).toBe(6000);
      expect((yield* provider.list).map(({ state }) => state).toSorted()).toEqual(["exited", "running"]);
    }).pipe(Effect.provide(simulated)),
  );
});
