/** Conformance: sessions and sandboxes, their actors' memory, and the tokens that live with them. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { session } from "../../src/machines/session.ts";
import { CloneCredentials, Identity, Sandboxes, Sessions } from "../../src/store/port.ts";
import {
  admitSession,
  BOOT_MS,
  hash,
  makeWorld,
  NOON,
  openSandbox,
  tellSandbox,
  tellSession,
  type Check,
} from "./store-fixture.ts";

const failure = { code: "clone_failed", message: "git said no" } as const;
const branched = (sandboxId: string) =>
  ({ type: "branch.created", commit: "a".repeat(40), sandboxId }) as const;

export const checkSessions = (check: Check): void => {
  describe("a session's memory", () => {
    check(
      "gives a new session its first command, and the next ones with the save that asks for them",
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
      "refuses a writer that read an earlier version and writes nothing of it [I18]",
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
      "forgets a command with the save of its outcome, and those without an outcome when told so",
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
      "knows no session under an unknown id",
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
        expect(yield* get(id)).toMatchObject({ status: "stopped", stopReason: "idle", stoppedAt: NOON + 3 });
        const second = randomUUID();
        yield* tellSession(id, { type: "restart.requested", sandboxId: second }, NOON + 4);
        expect(yield* get(id)).toMatchObject({
          status: "provisioning",
          sandboxId: second,
          stopReason: null,
          stoppedAt: null,
          runningAt: null,
          bootDeadlineAt: NOON + 4 + BOOT_MS,
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
      "leaves the lists when it is deleted, stopped on the way if it was live, and is still there by id",
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
      "is renamed, described, and told once that the agent took its prompt",
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

  describe("what is woken at start", () => {
    check(
      "is every session with commands left, live or ended, and none at rest",
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
        expect((yield* unsettled).toSorted()).toEqual([live, ending].toSorted());
      }),
    );
  });

  describe("a sandbox", () => {
    check(
      "is opened once with its first command, and its record follows its life",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get, newestOf, memory, unsettled } = yield* Sandboxes;
        const sessionId = yield* admitSession(world);
        expect(yield* newestOf(sessionId)).toBe(null);
        const { id } = yield* openSandbox(sessionId);
        expect((yield* memory.load(id))?.pending.map(({ command }) => command.type)).toEqual(["bootSandbox"]);
        yield* tellSandbox(id, { type: "daemon.ready" }, NOON + 1);
        expect(yield* get(id)).toMatchObject({
          status: "active",
          activeAt: NOON + 1,
          endedAt: null,
          sessionId,
        });
        expect(yield* unsettled).toEqual([id]);
        const lost = { code: "sandbox_lost", message: "gone" } as const;
        yield* tellSandbox(id, { type: "sandbox.lost", failure: lost }, NOON + 2);
        expect(yield* newestOf(sessionId)).toMatchObject({
          status: "error",
          failure: lost,
          endedAt: NOON + 2,
        });
        const next = yield* openSandbox(sessionId, NOON + 3);
        expect((yield* newestOf(sessionId))?.id).toBe(next.id);
      }),
    );

    check(
      "is held by its record until it has ended and its commands are done [I9]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { unheld, memory } = yield* Sandboxes;
        const stranger = randomUUID();
        const { id } = yield* openSandbox(yield* admitSession(world));
        const live = yield* openSandbox(yield* admitSession(world));
        expect(yield* unheld([])).toEqual([]);
        expect(yield* unheld([id, stranger, live.id])).toEqual([stranger]);
        yield* tellSandbox(id, { type: "stop.requested" });
        expect(yield* unheld([id, live.id])).toEqual([]);
        const pending = (yield* memory.load(id))?.pending ?? [];
        yield* memory.complete(
          id,
          pending.map((command) => command.id),
        );
        expect(yield* unheld([id, live.id])).toEqual([id]);
      }),
    );

    check(
      "cannot be opened beside a live one of its session [I10]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const sessionId = yield* admitSession(world);
        yield* openSandbox(sessionId);
        const error = yield* Effect.flip(openSandbox(sessionId));
        expect(error._tag).toBe("StoreError");
      }),
    );

    check(
      "is opened a second time under its id without effect",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { open, memory } = yield* Sandboxes;
        const sessionId = yield* admitSession(world);
        const { id } = yield* openSandbox(sessionId);
        yield* tellSandbox(id, { type: "daemon.ready" });
        const before = yield* memory.load(id);
        yield* open({
          id,
          sessionId,
          provider: "simulated",
          nodeId: "node-2",
          bootDeadlineAt: NOON,
          snapshot: { state: "provisioning", context: {} },
          commands: [{ type: "bootSandbox" }],
          serviceKeyHash: hash(),
          cliToken: { id: randomUUID(), hash: hash() },
          now: NOON,
        });
        expect(yield* memory.load(id)).toEqual(before);
      }),
    );
  });

  describe("the tokens of a sandbox", () => {
    check(
      "act for the session's user, inside its project, with the session's origin",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { authenticate } = yield* Identity;
        const sessionId = yield* admitSession(world, { origin: "trigger" });
        const sandbox = yield* openSandbox(sessionId);
        const principal = {
          origin: "trigger",
          accountId: world.accountId,
          user: { id: world.userId },
          projectId: world.projectId,
          sessionId,
          sandboxId: sandbox.id,
        };
        expect(yield* authenticate(sandbox.cliHash, NOON)).toMatchObject({ ...principal, kind: "access" });
        expect(yield* authenticate(sandbox.serviceKeyHash, NOON)).toMatchObject({
          ...principal,
          kind: "sandbox",
        });
      }),
    );

    check(
      "end with the sandbox, the user's already with the session [T03, I15]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { authenticate } = yield* Identity;
        const sessionId = yield* admitSession(world);
        const sandbox = yield* openSandbox(sessionId);
        yield* tellSession(sessionId, { type: "stop.requested" });
        expect(yield* authenticate(sandbox.cliHash, NOON)).toBe(null);
        expect(yield* authenticate(sandbox.serviceKeyHash, NOON)).not.toBe(null);
        yield* tellSandbox(sandbox.id, { type: "stop.requested" });
        expect(yield* authenticate(sandbox.serviceKeyHash, NOON)).toBe(null);
      }),
    );

    check(
      "include clone credentials, which end at their instant or with the sandbox [G10]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { mint, find } = yield* CloneCredentials;
        const sessionId = yield* admitSession(world);
        const sandbox = yield* openSandbox(sessionId);
        const credential = {
          hash: hash(),
          projectId: world.projectId,
          sessionId,
          sandboxId: sandbox.id,
          expiresAt: NOON + 1000,
          now: NOON,
        };
        yield* mint(credential);
        expect(yield* find(credential.hash, NOON + 999)).toEqual(credential);
        expect(yield* find(credential.hash, NOON + 1000)).toBe(null);
        expect(yield* find(hash(), NOON)).toBe(null);
        yield* tellSandbox(sandbox.id, { type: "archive.requested" });
        expect(yield* find(credential.hash, NOON)).toBe(null);
      }),
    );
  });
};
