/** A session's boot in a sandbox that waited for it (actors/sandboxes/boot.ts). */
import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { specRecipe, waitingSpec } from "../../../src/actors/sandboxes/spec.ts";
import type { Claim } from "../../../src/domain/sandbox/launch.ts";
import { sealSecret } from "../../../src/domain/secret/secret.ts";
import { DaemonUnreachable } from "../../../src/sandbox/daemon.ts";
import type { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { Keyring } from "../../../src/services/keyring.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { Sandboxes } from "../../../src/store/ports/sessions/sandboxes.ts";
import { Secrets } from "../../../src/store/ports/projects/secrets.ts";
import { WarmSandboxes } from "../../../src/store/ports/sessions/warm-sandboxes.ts";
import { openActorsWorld, SPEC_OPTIONS, until } from "../../support/world/actors.ts";
import { manifestOf } from "../../support/world/environments.ts";
import { admitSession } from "../../support/world/sessions.ts";
import { NOON } from "../../support/world/world.ts";
import { rounds } from "../../support/vitest/rings.ts";

const silent = Effect.fail(new DaemonUnreachable({ message: "no answer" }));

/** Adds a sandbox that waits, started as the project is now. `recipe` replaces that. @returns its id */
const plantWaiting = Effect.fnUntraced(function* (
  sandboxes: (typeof SimulatedSandboxes)["Service"],
  projectId: string,
  recipe?: string,
) {
  const id = randomUUID();
  const warm = yield* WarmSandboxes;
  const makeSpec = yield* waitingSpec(SPEC_OPTIONS);
  const { spec, given } = yield* makeSpec(id, projectId, { image: null, variables: {} });
  yield* sandboxes.plant(spec);
  const kind = { wantedBy: "manifest", wantedUntil: null } as const;
  yield* warm.add({ id, projectId, nodeId: "node-1", ...kind, createdAt: NOON, atMost: 50 });
  yield* warm.ready(id, { recipe: recipe ?? specRecipe(spec), secrets: given });
  return id;
});

/** A world in which one sandbox waits. `recipe` replaces that of the project as it is. */
const open = Effect.fnUntraced(function* (recipe?: string) {
  const world = yield* openActorsWorld({ isWarm: true });
  const { projectId } = world.world;
  const claims: Claim[] = [];
  world.script.claim = (claim) => Effect.sync(() => void claims.push(claim));
  const id = yield* world.inPorts(plantWaiting(world.sandboxes, projectId, recipe));
  const { actors } = yield* world.begin;
  const sessionId = yield* world.admit;
  const specNow = Effect.map(world.sandboxes.all, (all) => all.get(id)?.spec ?? null);
  return { ...world, id, sessionId, claims, specNow, wake: actors.wake("session", sessionId) };
});

/** After how many claims the secret changes. */
const ROTATED_AFTER = 20;

/** How many sessions come at once. */
const SESSIONS = rounds(100, 1_000);

/** So many sessions come at once where 50 sandboxes wait, and a secret changes after some claims. Ends when all of them run. */
const crowd = Effect.gen(function* () {
  const world = yield* openActorsWorld({ isWarm: true, cap: SESSIONS });
  const { projectId, userId } = world.world;
  const change = Effect.fnUntraced(function* (value: string) {
    const secrets = yield* Secrets;
    const place = { projectId, name: "COLOUR", version: yield* secrets.nextVersion(projectId, "COLOUR") };
    const envelope = sealSecret((yield* Keyring).secrets, place, { value, nonce: new Uint8Array(12) });
    yield* secrets.put({ ...place, envelope }, { userId, now: NOON });
  });
  yield* world.inPorts(change("old"));
  const waiting = yield* Effect.forEach(Array.from({ length: 50 }), () =>
    world.inPorts(plantWaiting(world.sandboxes, projectId)),
  );
  const claims: Claim[] = [];
  world.script.claim = (claim) =>
    Effect.suspend(() =>
      claims.push(claim) === ROTATED_AFTER ? Effect.orDie(world.inPorts(change("new"))) : Effect.void,
    );
  const { actors } = yield* world.begin;
  const sessions = yield* Effect.forEach(Array.from({ length: SESSIONS }), () => world.admit);
  yield* Effect.forEach(sessions, (id) => actors.wake("session", id), { concurrency: "unbounded" });
  yield* until(
    Effect.map(Effect.forEach(sessions, world.statusOf), (all) =>
      all.every((status) => status === "running"),
    ),
  );
  const inStore = Effect.gen(function* () {
    const { revision } = yield* (yield* Secrets).current(projectId);
    return { revision, outdated: (yield* (yield* Sandboxes).outdated("node-1")).map(({ id }) => id) };
  });
  const { revision: revisionNow, outdated } = yield* world.inPorts(inStore);
  const specs = yield* world.sandboxes.all;
  return { sessions, waiting, claims, revisionNow, specs, session: world.session, outdated };
});

describe("a session that finds a waiting sandbox", () => {
  it.effect("does not fit it with a way out to more hosts, as an own subscription brings it [K23]", () =>
    Effect.gen(function* () {
      const { inPorts, world } = yield* openActorsWorld({ isWarm: true });
      const recipe = (egressAllow: readonly string[]) =>
        inPorts(
          Effect.gen(function* () {
            const makeSpec = yield* waitingSpec({ ...SPEC_OPTIONS, egressAllow });
            const environment = { image: null, variables: {} };
            return specRecipe((yield* makeSpec(randomUUID(), world.projectId, environment)).spec);
          }),
        );
      expect(yield* recipe(["a.example"])).toBe(yield* recipe(["a.example"]));
      expect(yield* recipe(["a.example", "api.anthropic.com"])).not.toBe(yield* recipe(["a.example"]));
    }),
  );

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

  it.effect("starts one under the same id if the node has another version of its runtime since", () =>
    Effect.gen(function* () {
      const { sandboxes, sessionId, claims, specNow, wake, untilSession } = yield* open();
      yield* sandboxes.install("sha256:newer");
      yield* wake;
      yield* untilSession(sessionId, "running");
      expect(yield* specNow).toMatchObject({ sessionId, installed: "sha256:newer" });
      expect(claims).toEqual([]);
    }),
  );

  it.effect(
    `is one of 50 for ${SESSIONS} sessions at once; if a secret changes meanwhile, each has the new value or gets it next [E17] [E18]`,
    () =>
      Effect.gen(function* () {
        const { sessions, waiting, claims, revisionNow, specs, session, outdated } = yield* crowd;
        expect(new Set(claims.map((claim) => claim.session_id)).size).toBe(claims.length);
        // The secret changed after this many claims. No later session took a sandbox from before the change.
        expect(claims.length).toBeGreaterThanOrEqual(ROTATED_AFTER);
        expect(claims.length).toBeLessThan(waiting.length);
        const taken = yield* Effect.forEach(sessions, (id) =>
          Effect.map(session(id), (row) => row?.sandboxId ?? ""),
        );
        expect(new Set(taken).size).toBe(sessions.length);
        expect(taken.filter((id) => waiting.some((one) => one === id)).length).toBe(50);
        expect(revisionNow).toBe(2);
        const untold = taken.filter((id) => {
          const spec = specs.get(id)?.spec;
          const revision = spec?.environment["PLATFORM_PROJECT_SECRETS_REVISION"];
          expect([revision, spec?.secrets["COLOUR"]]).toEqual(revision === "2" ? ["2", "new"] : ["1", "old"]);
          return revision === "1" && !outdated.includes(id);
        });
        expect(untold).toEqual([]);
      }),
    60_000,
  );

  it.effect(
    "leaves it to others if its agent has another runtime, and takes it if only the mode differs",
    () =>
      Effect.gen(function* () {
        const world = yield* openActorsWorld({ isWarm: true });
        const { projectId } = world.world;
        const text = '[agents.ours]\nruntime = "acp"\ncommand = ["ours"]\n[agents.planner]\nmode = "plan"';
        const reading = { commit: "c1", good: manifestOf(null, text), failure: null, now: NOON };
        yield* world.inPorts(
          Effect.flatMap(Projects, (projects) => projects.recordManifest(projectId, reading)),
        );
        const claims: Claim[] = [];
        world.script.claim = (claim) => Effect.sync(() => void claims.push(claim));
        const id = yield* world.inPorts(plantWaiting(world.sandboxes, projectId));
        const { actors } = yield* world.begin;
        const run = Effect.fnUntraced(function* (agentName: string) {
          const sessionId = yield* world.inPorts(admitSession(world.world, { agentName }));
          yield* actors.wake("session", sessionId);
          yield* world.untilSession(sessionId, "running");
          return yield* world.newestSandbox(sessionId);
        });
        const ours = yield* run("ours");
        expect(ours?.id).not.toBe(id);
        expect(claims).toEqual([]);
        const specs = yield* world.sandboxes.all;
        expect(specs.get(ours?.id ?? "")?.spec.runtime).toMatchObject({ adapter: "acp", command: ["ours"] });
        expect((yield* run("planner"))?.id).toBe(id);
        expect(claims).toMatchObject([{ agent: { mode: "plan" } }]);
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
