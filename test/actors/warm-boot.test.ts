/** A session's boot in a sandbox that waited for it (actors/sandbox-boot.ts). */
import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { recipeOf, waitingSpec } from "../../src/actors/sandbox-spec.ts";
import type { Claim } from "../../src/domain/launch.ts";
import { DaemonUnreachable } from "../../src/sandbox/daemon.ts";
import { WarmSandboxes } from "../../src/store/ports/warm-sandboxes.ts";
import { openActorsWorld, SPEC_OPTIONS } from "../support/world/actors.ts";
import { NOON } from "../support/world/world.ts";

const silent = Effect.fail(new DaemonUnreachable({ message: "no answer" }));

/** A world in which one sandbox waits. `recipe` replaces that of the project as it is. */
const open = Effect.fnUntraced(function* (recipe?: string) {
  const world = yield* openActorsWorld({ isWarm: true });
  const { projectId } = world.world;
  const id = randomUUID();
  const claims: Claim[] = [];
  world.script.claim = (claim) => Effect.sync(() => void claims.push(claim));
  yield* world.inPorts(
    Effect.gen(function* () {
      const warm = yield* WarmSandboxes;
      const makeSpec = yield* waitingSpec(SPEC_OPTIONS);
      const { spec, given } = yield* makeSpec(id, projectId, { image: null, variables: {} });
      yield* world.sandboxes.plant(spec);
      const kind = { wantedBy: "manifest", wantedUntil: null } as const;
      const row = { id, projectId, nodeId: "node-1", ...kind, createdAt: NOON, atMost: 1 };
      yield* warm.add(row);
      yield* warm.ready(id, { recipe: recipe ?? recipeOf(spec), secrets: given });
    }),
  );
  const { actors } = yield* world.begin;
  const sessionId = yield* world.admit;
  const specNow = Effect.map(world.sandboxes.all, (all) => all.get(id)?.spec ?? null);
  return { ...world, id, sessionId, claims, specNow, wake: actors.wake("session", sessionId) };
});

describe("a session that finds a waiting sandbox", () => {
  it.effect("takes it as it is, and gives it what belongs to the session", () =>
    Effect.gen(function* () {
      const { id, sessionId, claims, specNow, wake, untilSession, newestSandbox, running } = yield* open();
      yield* wake;
      yield* untilSession(sessionId, "running");
      expect(yield* running).toEqual([id]);
      expect((yield* specNow)?.sessionId).toBe(null);
      expect(yield* newestSandbox(sessionId)).toMatchObject({ id, status: "active" });
      expect(claims).toHaveLength(1);
      expect(claims[0]?.branch_commit).toMatch(/^[0-9a-f]{40}$/);
      expect(claims[0]).toMatchObject({
        session_id: sessionId,
        environment: {
          PLATFORM_SESSION_ID: sessionId,
          PLATFORM_BRANCH_NAME: sessionId,
          PLATFORM_BASE_REF: "main",
          PLATFORM_INITIAL_PROMPT: "Say hello.",
          PLATFORM_BOOTSTRAP_AGENT_SESSION: "1",
        },
      });
      expect(JSON.stringify(claims)).not.toContain("platform_");
    }),
  );

  it.effect("starts one under the same id if the project has changed since [E18]", () =>
    Effect.gen(function* () {
      const { id, sessionId, claims, specNow, wake, untilSession, newestSandbox } = yield* open("another");
      yield* wake;
      yield* untilSession(sessionId, "running");
      expect((yield* specNow)?.sessionId).toBe(sessionId);
      expect(claims).toEqual([]);
      expect(yield* newestSandbox(sessionId)).toMatchObject({ id, warmRecipe: null });
    }),
  );

  it.effect("starts one under the same id if it has ended", () =>
    Effect.gen(function* () {
      const world = yield* open();
      const { id, sessionId, specNow, wake, untilSession, sandboxes, script } = world;
      script.claim = () => silent;
      yield* sandboxes.end(id, { code: "exited", message: "it ended" });
      yield* wake;
      yield* untilSession(sessionId, "running");
      expect((yield* specNow)?.sessionId).toBe(sessionId);
    }),
  );

  it.effect("claims again if the answer was lost, and never starts a second one beside it", () =>
    Effect.gen(function* () {
      const { id, sessionId, claims, specNow, wake, untilSession, running, script } = yield* open();
      script.claim = (claim) =>
        Effect.suspend(() => {
          claims.push(claim);
          return claims.length < 4 ? silent : Effect.void;
        });
      yield* wake;
      yield* untilSession(sessionId, "running");
      expect(claims).toHaveLength(4);
      expect(new Set(claims.map((claim) => claim.session_id))).toEqual(new Set([sessionId]));
      expect(yield* running).toEqual([id]);
      expect((yield* specNow)?.sessionId).toBe(null);
    }),
  );

  it.effect("fails like another boot if it never answers", () =>
    Effect.gen(function* () {
      const { sessionId, wake, untilSession, session, running, script } = yield* open();
      script.claim = () => silent;
      yield* wake;
      yield* untilSession(sessionId, "failed");
      expect(yield* session(sessionId)).toMatchObject({ failure: { code: "boot_timeout" } });
      yield* TestClock.adjust("1 second");
      expect(yield* running).toEqual([]);
    }),
  );
});
