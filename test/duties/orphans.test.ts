import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { removeOrphans } from "../../src/duties/orphans.ts";
import { BARE_SPEC, type SandboxSpec } from "../../src/sandbox/port.ts";
import { answered, openActorsWorld } from "../support/world/actors.ts";
import { PLAIN_RUNTIME } from "../support/machine/plain-runtime.ts";

const spec = (id: string): SandboxSpec => ({
  ...BARE_SPEC,
  id,
  sessionId: randomUUID(),
  environment: {},
  runtime: PLAIN_RUNTIME,
  bootDeadlineMs: 1000,
});

const look = Effect.fnUntraced(function* (world: Effect.Success<ReturnType<typeof openActorsWorld>>) {
  yield* answered(world.inPorts(removeOrphans));
  return yield* world.running;
});

/** A world with one running session. */
const running = Effect.gen(function* () {
  const world = yield* openActorsWorld();
  const { actors, end } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  yield* world.untilSession(id, "running");
  const own = (yield* world.newestSandbox(id))?.id ?? "";
  return { world, actors, end, id, own };
});

describe("sandboxes without a record", () => {
  it.effect("are removed, whatever their name, and those of running sessions stay [I9]", () =>
    Effect.gen(function* () {
      const { world, own } = yield* running;
      for (const id of [randomUUID(), "left-by-hand"]) yield* world.sandboxes.plant(spec(id));
      expect(yield* world.running).toHaveLength(3);
      expect(yield* look(world)).toEqual([own]);
    }),
  );

  it.effect("are removed even if a destruction claimed success [I9]", () =>
    Effect.gen(function* () {
      const { world, actors, id, own } = yield* running;
      yield* actors.session(id, { type: "stop.requested" });
      yield* world.untilSandbox(id, "stopped");
      yield* world.sandboxes.plant(spec(own));
      expect(yield* look(world)).toEqual([]);
    }),
  );

  it.effect("are left to their actor while it has work to do", () =>
    Effect.gen(function* () {
      const { world, actors, id, own } = yield* running;
      yield* world.sandboxes.fault("destroy", { kind: "hang" });
      yield* actors.session(id, { type: "stop.requested" });
      yield* world.untilSandbox(id, "stopped");
      expect(yield* look(world)).toEqual([own]);
    }),
  );

  it.effect("wait for the next check if the provider fails [R05]", () =>
    Effect.gen(function* () {
      const { world, own } = yield* running;
      const orphan = randomUUID();
      yield* world.sandboxes.plant(spec(orphan));
      yield* world.sandboxes.fault("list", { kind: "error", message: "no answer" });
      expect(yield* look(world)).toHaveLength(2);
      yield* world.sandboxes.fault("destroy", { kind: "error", message: "busy" });
      expect(yield* look(world)).toHaveLength(2);
      expect(yield* look(world)).toEqual([own]);
    }),
  );

  it.effect("wait a minute for a provider that never answers, and no longer", () =>
    Effect.gen(function* () {
      const { world, own } = yield* running;
      yield* world.sandboxes.plant(spec(randomUUID()));
      yield* world.sandboxes.fault("list", { kind: "hang" });
      expect(yield* look(world)).toHaveLength(2);
      yield* world.sandboxes.fault("destroy", { kind: "hang" });
      expect(yield* look(world)).toHaveLength(2);
      expect(yield* look(world)).toEqual([own]);
    }),
  );
});
