/** The statements of a boot: each step of a session and its sandbox is one, because a boot waits for them in turn. */
import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { sandbox } from "../../../src/machines/sandbox.ts";
import { session } from "../../../src/machines/session.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { Sandboxes } from "../../../src/store/ports/sessions/sandboxes.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { WarmSandboxes } from "../../../src/store/ports/sessions/warm-sandboxes.ts";
import { type Store } from "../../conformance/store/fixture.ts";
import { counted } from "../../support/postgres/counted.ts";
import { storeOfFile } from "../../support/postgres/postgres.ts";
import { admitSession, openSandbox } from "../../support/world/sessions.ts";
import { hash, makeWorld, NOON, PAST_BOOT } from "../../support/world/world.ts";

const store = storeOfFile();
const check = <E>(name: string, test: Effect.Effect<void, E, Store | SqlClient.SqlClient | Scope.Scope>) => {
  it.live(name, () => Effect.provide(Effect.scoped(test), store, { local: true }));
};

const statementsOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(counted(effect), ({ count }) => count());

check(
  "the branch, the sandbox's record and its boot are one statement each",
  Effect.gen(function* () {
    const { memory } = yield* Sessions;
    const { open, beginBoot, get } = yield* Sandboxes;
    const world = yield* makeWorld(5);
    const id = yield* admitSession(world);
    const sandboxId = randomUUID();
    const loaded = yield* memory.load(id);
    if (loaded === null) throw new Error("the session has no memory");
    const event = { type: "branch.created", commit: "a".repeat(40), sandboxId } as const;
    const { snapshot: after, commands } = session.step(loaded.snapshot, event);
    const [first] = loaded.pending;
    const step = { event, before: loaded.snapshot, after, commands, completes: first?.id ?? null, now: NOON };
    expect(yield* statementsOf(memory.save({ id, version: loaded.version, ...step }))).toBe(1);
    const pending = (yield* memory.load(id))?.pending ?? [];
    expect(pending.map(({ command }) => command)).toEqual(commands);

    const started = sandbox.start({});
    const opening = open({
      id: sandboxId,
      sessionId: id,
      provider: "simulated",
      nodeId: "node-1",
      bootDeadlineAt: PAST_BOOT,
      snapshot: started.snapshot,
      commands: started.commands,
      serviceKeyHash: hash(),
      cliToken: { id: randomUUID(), hash: hash() },
      now: NOON,
    });
    expect(yield* statementsOf(opening)).toBe(1);
    expect(yield* statementsOf(beginBoot(sandboxId, { now: NOON, deadlineAt: PAST_BOOT }))).toBe(1);
    expect(yield* get(sandboxId)).toMatchObject({ status: "provisioning", bootStartedAt: NOON });
  }),
);

check(
  "a sandbox that becomes active is one statement, with its commands in their order",
  Effect.gen(function* () {
    const { memory } = yield* Sandboxes;
    const { id } = yield* openSandbox(yield* admitSession(yield* makeWorld(5)));
    const loaded = yield* memory.load(id);
    if (loaded === null) throw new Error("the sandbox has no memory");
    const event = { type: "daemon.ready" } as const;
    const { snapshot: after, commands } = sandbox.step(loaded.snapshot, event);
    expect(commands.length).toBeGreaterThan(1);
    const [first] = loaded.pending;
    const step = { event, before: loaded.snapshot, after, commands, completes: first?.id ?? null, now: NOON };
    const { answer, count } = yield* counted(memory.save({ id, version: loaded.version, ...step }));
    expect(count()).toBe(1);
    expect(answer.pending.map(({ command }) => command)).toEqual(commands);
    expect((yield* memory.load(id))?.pending).toEqual(answer.pending);
  }),
);

check(
  "a waiting sandbox is claimed with one statement, and a project's state read with two",
  Effect.gen(function* () {
    const { claim } = yield* WarmSandboxes;
    const { states } = yield* Projects;
    const world = yield* makeWorld(5);
    const sessionId = yield* admitSession(world);
    const asked = { projectId: world.projectId, sessionId, nodeId: "node-1", isPersons: true, now: NOON };
    expect(yield* statementsOf(claim(asked))).toBe(1);
    expect(yield* statementsOf(states([world.projectId]))).toBe(2);
  }),
);
