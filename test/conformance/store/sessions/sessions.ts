/** Conformance: sessions, their actors' memory, and the lists of sessions to wake or to end. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { NOTHING_TO_SAVE } from "../../../../src/domain/save/saved.ts";
import { session } from "../../../../src/machines/session.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { Sandboxes } from "../../../../src/store/ports/sessions/sandboxes.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { followSession, type Check } from "../fixture.ts";
import { admitSession, openSandbox, tellSandbox, tellSession } from "../../../support/world/sessions.ts";
import { BOOT_MS, makeWorld, NOON } from "../../../support/world/world.ts";

const failure = { code: "clone_failed", message: "git said no" } as const;
const branched = (sandboxId: string) =>
  ({ type: "branch.created", commit: "a".repeat(40), sandboxId }) as const;

/** Marks all pending commands as done. */
const forget = Effect.fnUntraced(function* (kind: "session" | "sandbox", id: string) {
  const memory = kind === "session" ? (yield* Sessions).memory : (yield* Sandboxes).memory;
  const loaded = yield* memory.load(id);
  yield* memory.complete(id, loaded?.pending.map((command) => command.id) ?? []);
});

export const checkSessions = (check: Check): void => {
  describe("a session's memory", () => {
    check(
      "gives a new session its first command, and the next ones with the save that requests them",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const id = yield* admitSession(world);
        const { memory } = yield* Sessions;
        const loaded = yield* memory.load(id);
        expect(loaded?.snapshot).toEqual(session.start({}).snapshot);
        expect(loaded?.pending.map(({ command }) => command)).toEqual([{ type: "createBranch" }]);
        const sandboxId = randomUUID();
        const saved = yield* tellSession(id, branched(sandboxId));
        expect(saved.version).toBe(2);
        expect(saved.pending.map(({ command }) => command)).toEqual([
          { type: "provisionSandbox", sandboxId },
        ]);
        const again = yield* memory.load(id);
        expect(again?.pending.map(({ command }) => command.type)).toEqual([
          "createBranch",
          "provisionSandbox",
        ]);
      }),
    );

    check(
      "refuses a writer that read an earlier version and writes no part of its step [I18]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const id = yield* admitSession(world);
        const { memory, get } = yield* Sessions;
        const loaded = yield* memory.load(id);
        if (loaded === null) return yield* Effect.die("not there");
        yield* tellSession(id, { type: "stop.requested" });
        const event = { type: "branch.failed", failure } as const;
        const stale = session.step(loaded.snapshot, event);
        const error = yield* Effect.flip(
          memory.save({
            id,
            version: loaded.version,
            event,
            before: loaded.snapshot,
            after: stale.snapshot,
            commands: [{ type: "createBranch" }],
            completes: loaded.pending[0]?.id ?? null,
            now: NOON,
          }),
        );
        expect(error._tag).toBe("Fenced");
        const stands = yield* get(id);
        expect(stands).toMatchObject({ status: "stopped", failure: null });
        const after = yield* memory.load(id);
        expect(after?.pending.map(({ command }) => command.type)).toEqual(["createBranch", "signalFreeSlot"]);
        const { account } = yield* Identity;
        expect((yield* account(world.accountId))?.activeSessions).toBe(0);
      }),
    );

    check(
      "forgets a command with the save of its outcome, and a command without an outcome on request",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const id = yield* admitSession(world);
        const { memory } = yield* Sessions;
        const loaded = yield* memory.load(id);
        if (loaded === null) return yield* Effect.die("not there");
        const event = branched(randomUUID());
        const { snapshot, commands } = session.step(loaded.snapshot, event);
        const { pending } = yield* memory.save({
          id,
          version: loaded.version,
          event,
          before: loaded.snapshot,
          after: snapshot,
          commands,
          completes: loaded.pending[0]?.id ?? null,
          now: NOON,
        });
        expect((yield* memory.load(id))?.pending).toEqual(pending);
        const ids = pending.map((entry) => entry.id);
        yield* memory.complete(id, ids);
        yield* memory.complete(id, [...ids, "not-an-id"]);
        expect((yield* memory.load(id))?.pending).toEqual([]);
      }),
    );

    check(
      "does not complete another actor's command",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const [one, other] = [yield* admitSession(world), yield* admitSession(world)];
        const { memory } = yield* Sessions;
        const pending = (yield* memory.load(other))?.pending ?? [];
        yield* memory.complete(
          one,
          pending.map(({ id }) => id),
        );
        expect((yield* memory.load(other))?.pending).toEqual(pending);
      }),
    );

    check(
      "finds no session under an unknown id",
      Effect.gen(function* () {
        const { memory, get, rename } = yield* Sessions;
        expect(yield* memory.load(randomUUID())).toBe(null);
        expect(yield* get(randomUUID())).toBe(null);
        expect(yield* rename(randomUUID(), { name: "x", now: NOON })).toBe(null);
      }),
    );
  });

  describe("a session's record", () => {
    check(
      "follows its life: branch, running, stop, restart, failure",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get } = yield* Sessions;
        const id = yield* admitSession(world);
        const first = randomUUID();
        yield* tellSession(id, branched(first), NOON + 1);
        expect(yield* get(id)).toMatchObject({
          baseCommit: "a".repeat(40),
          sandboxId: first,
          runningAt: null,
        });
        yield* tellSession(id, { type: "sandbox.live", sandboxId: first }, NOON + 2);
        expect(yield* get(id)).toMatchObject({ status: "running", runningAt: NOON + 2, updatedAt: NOON + 2 });
        yield* tellSession(id, { type: "idle.elapsed" }, NOON + 3);
        expect(yield* get(id)).toMatchObject({ status: "running", stopReason: null, saved: null });
        const saved = {
          ...NOTHING_TO_SAVE,
          wip: "c0ffee",
          skipped: [{ path: "a\nb", reason: "ignored by git" }],
        };
        yield* tellSession(id, { type: "sandbox.ended", sandboxId: first, saved }, NOON + 3);
        expect(yield* get(id)).toMatchObject({
          status: "stopped",
          stopReason: "idle",
          stoppedAt: NOON + 3,
          saved,
        });
        const second = randomUUID();
        yield* tellSession(id, { type: "restart.requested", sandboxId: second }, NOON + 4);
        expect(yield* get(id)).toMatchObject({
          status: "provisioning",
          sandboxId: second,
          stopReason: null,
          stoppedAt: null,
          runningAt: null,
          bootDeadlineAt: NOON + 4 + BOOT_MS,
          saved,
        });
        yield* tellSession(id, { type: "sandbox.failed", sandboxId: second, failure }, NOON + 5);
        expect(yield* get(id)).toMatchObject({
          status: "failed",
          failure: { ...failure, at: NOON + 5 },
          stopReason: null,
        });
      }),
    );

    check(
      "leaves the lists when it is deleted, is stopped first if it was live, and is still found by id",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { anyIn, get, list } = yield* Sessions;
        expect(yield* anyIn(world.projectId)).toBe(false);
        const [live, stopped] = [yield* admitSession(world), yield* admitSession(world)];
        yield* tellSession(stopped, { type: "stop.requested" });
        yield* tellSession(live, { type: "delete.requested" }, NOON + 1);
        yield* tellSession(stopped, { type: "delete.requested" }, NOON + 2);
        expect(yield* get(live)).toMatchObject({
          status: "stopped",
          stopReason: "deleted",
          deletedAt: NOON + 1,
        });
        expect(yield* get(stopped)).toMatchObject({ stopReason: "requested", deletedAt: NOON + 2 });
        const page = yield* list(world.projectId, { limit: 10, cursor: null, status: null });
        expect(page).toEqual({ items: [], nextCursor: null });
        expect(yield* anyIn(world.projectId)).toBe(true);
      }),
    );

    check(
      "is renamed, described, and told once that the agent received its prompt",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { rename, acceptBootstrap, get } = yield* Sessions;
        const id = yield* admitSession(world, { name: "first", metadata: { a: 1 } });
        expect(yield* rename(id, { metadata: { b: ["ü", null] }, now: NOON + 1 })).toMatchObject({
          name: "first",
          metadata: { b: ["ü", null] },
        });
        expect(yield* rename(id, { name: "second", now: NOON + 2 })).toMatchObject({
          name: "second",
          metadata: { b: ["ü", null] },
          updatedAt: NOON + 2,
        });
        yield* acceptBootstrap(id, NOON + 3);
        yield* acceptBootstrap(id, NOON + 4);
        expect((yield* get(id))?.bootstrapAcceptedAt).toBe(NOON + 3);
      }),
    );
  });

  describe("a session's last turn", () => {
    check(
      "is the newest of its current sandbox, and each is reported by one event",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { noteTurn, get } = yield* Sessions;
        const id = yield* admitSession(world);
        const sandboxId = (yield* openSandbox(id)).id;
        const error = { code: "model_rate_limited", message: 'It said: "no" \u2026' };
        const failed = {
          sandboxId,
          number: 1,
          state: "failed",
          error,
          at: new Date(NOON).toISOString(),
        } as const;
        expect(yield* noteTurn(id, { ...failed, sandboxId: randomUUID(), now: NOON })).toBeNull();
        expect((yield* get(id))?.lastTurn).toBeNull();
        const told = yield* followSession({ projectId: world.projectId, sessionId: id }, "session.turn");
        expect(yield* noteTurn(id, { ...failed, now: NOON + 1 })).toEqual({ projectId: world.projectId });
        expect((yield* get(id))?.lastTurn).toEqual(failed);
        const completed = { ...failed, number: 12, state: "completed", error: null } as const;
        expect(yield* noteTurn(id, { ...failed, now: NOON + 2 })).toBeNull();
        expect(yield* noteTurn(id, { ...completed, now: NOON + 3 })).not.toBeNull();
        expect(yield* noteTurn(id, { ...failed, number: 3, now: NOON + 4 })).toBeNull();
        expect(
          yield* noteTurn(id, { ...failed, sandboxId: randomUUID(), number: 20, now: NOON + 5 }),
        ).toBeNull();
        expect((yield* get(id))?.lastTurn).toEqual(completed);
        expect((yield* told(2)).map(({ at, data }) => [at, data])).toEqual([
          [NOON + 1, { state: "failed", error, at: failed.at }],
          [NOON + 3, { state: "completed", error: null, at: failed.at }],
        ]);
        expect(yield* noteTurn(randomUUID(), { ...failed, now: NOON })).toBeNull();
      }),
    );
  });

  describe("the list of sessions to wake at start", () => {
    check(
      "contains every session with commands left, live or ended, and none at rest",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { memory, unsettled } = yield* Sessions;
        const [live, ending, settled] = [
          yield* admitSession(world),
          yield* admitSession(world),
          yield* admitSession(world),
        ];
        for (const id of [ending, settled]) yield* tellSession(id, { type: "stop.requested" });
        const left = (yield* memory.load(settled))?.pending ?? [];
        yield* memory.complete(
          settled,
          left.map(({ id }) => id),
        );
        expect((yield* unsettled).map(({ id }) => id).toSorted()).toEqual([live, ending].toSorted());
      }),
    );

    check(
      "contains no session without commands",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { memory, unsettled } = yield* Sessions;
        const id = yield* admitSession(world);
        const left = (yield* memory.load(id))?.pending ?? [];
        const sandboxId = randomUUID();
        yield* tellSession(id, { type: "branch.created", commit: "c0ffee", sandboxId });
        const more = (yield* memory.load(id))?.pending ?? [];
        yield* memory.complete(
          id,
          [...left, ...more].map((pending) => pending.id),
        );
        yield* tellSession(id, { type: "sandbox.live", sandboxId });
        expect(yield* unsettled).toEqual([]);
      }),
    );
  });

  describe("running sessions", () => {
    check(
      "are reported by the node that has their sandboxes",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { runningOn } = yield* Sessions;
        const [running, booting] = [yield* admitSession(world), yield* admitSession(world)];
        const ids = new Map<string, string>();
        for (const sessionId of [running, booting]) {
          const sandboxId = (yield* openSandbox(sessionId)).id;
          ids.set(sessionId, sandboxId);
          yield* tellSession(sessionId, { type: "branch.created", commit: "c", sandboxId });
        }
        const sandboxId = ids.get(running) ?? "";
        yield* tellSandbox(sandboxId, { type: "daemon.ready" });
        expect(yield* runningOn("node-1")).toEqual([]);
        yield* tellSession(running, { type: "sandbox.live", sandboxId }, NOON + 7);
        expect(yield* runningOn("node-1")).toEqual([
          {
            id: running,
            accountId: world.accountId,
            sandboxId,
            runningAt: NOON + 7,
            unsaved: null,
            isSaved: false,
            asks: null,
            isSurplus: false,
          },
        ]);
        expect(yield* runningOn("node-2")).toEqual([]);
        yield* tellSession(running, { type: "sandbox.lost", sandboxId, failure });
        expect(yield* runningOn("node-1")).toEqual([]);
      }),
    );
  });

  describe("a live session", () => {
    check(
      "has an owner as long as it or its sandbox has commands left [I7]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { ownerless } = yield* Sessions;
        const id = yield* admitSession(world);
        expect(yield* ownerless).toEqual([]);
        yield* forget("session", id);
        expect(yield* ownerless).toEqual([{ id, sandboxId: null, sandbox: null, isHeld: true }]);
        const sandbox = yield* openSandbox(id);
        yield* tellSession(id, branched(sandbox.id));
        yield* forget("session", id);
        expect(yield* ownerless).toEqual([]);
        yield* forget("sandbox", sandbox.id);
        expect(yield* ownerless).toEqual([
          { id, sandboxId: sandbox.id, sandbox: "provisioning", isHeld: true },
        ]);
        yield* tellSandbox(sandbox.id, { type: "daemon.ready" });
        yield* tellSession(id, { type: "sandbox.live", sandboxId: sandbox.id });
        expect(yield* ownerless).toEqual([]);
        yield* forget("sandbox", sandbox.id);
        const left = { id, sandboxId: sandbox.id, sandbox: "active" };
        expect(yield* ownerless).toEqual([{ ...left, isHeld: true }]);
        // The session has ended, and no command of it ends its sandbox.
        yield* tellSession(id, { type: "sandbox.lost", sandboxId: sandbox.id, failure });
        expect(yield* ownerless).toEqual([]);
        yield* forget("session", id);
        expect(yield* ownerless).toEqual([{ ...left, isHeld: false }]);
        yield* tellSandbox(sandbox.id, { type: "sandbox.lost", failure });
        expect(yield* ownerless).toEqual([]);
        yield* tellSession(id, { type: "sandbox.lost", sandboxId: sandbox.id, failure });
        expect(yield* ownerless).toEqual([]);
      }),
    );
  });
};
