/** Which sandbox a session goes on in (src/services/sessions/warm-pool.ts). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { expect } from "vitest";
import { sandboxToGoOn, WarmPool } from "../../src/services/sessions/warm-pool.ts";

it.effect.each([
  { status: "stopped", takes: "a waiting sandbox" },
  { status: "failed", takes: "a waiting sandbox" },
  // Their stop is under way.
  { status: "provisioning", takes: "a new sandbox" },
  { status: "running", takes: "a new sandbox" },
] as const)("a session that is $status goes on in $takes", ({ status, takes }) =>
  Effect.gen(function* () {
    const session = {
      id: "session",
      projectId: "project",
      origin: "session",
      agentName: "default",
      status,
    } as const;
    const pool = { ...(yield* WarmPool), claim: () => Effect.succeed("waiting") };
    const taken = yield* Effect.provideService(sandboxToGoOn(session), WarmPool, pool);
    expect(taken === "waiting").toBe(takes === "a waiting sandbox");
    // Here the pool has no places.
    expect(yield* sandboxToGoOn(session)).toMatch(/^[0-9a-f-]{36}$/);
  }),
);
