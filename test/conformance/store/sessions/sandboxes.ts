/** Conformance: sandboxes, their actors' memory, and the tokens that end with them. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { NOTHING_TO_SAVE } from "../../../../src/domain/save/saved.ts";
import { sandbox as sandboxMachine } from "../../../../src/machines/sandbox.ts";
import { CloneCredentials } from "../../../../src/store/ports/sessions/clone-credentials.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { Sandboxes } from "../../../../src/store/ports/sessions/sandboxes.ts";
import { followSession, type Check } from "../fixture.ts";
import { admitSession, openSandbox, tellSandbox, tellSession } from "../../../support/world/sessions.ts";
import { hash, makeWorld, NOON } from "../../../support/world/world.ts";

export const checkSandboxes = (check: Check): void => {
  describe("a sandbox", () => {
    check(
      "is opened once with its first command, and its record follows its life",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get, newest, memory, unsettled } = yield* Sandboxes;
        const sessionId = yield* admitSession(world);
        expect(yield* newest(sessionId)).toBe(null);
        const { id } = yield* openSandbox(sessionId);
        expect((yield* memory.load(id))?.pending.map(({ command }) => command.type)).toEqual(["bootSandbox"]);
        const newestCommand = Effect.map(memory.load(id), (loaded) => loaded?.pending.at(-1)?.id);
        yield* tellSandbox(id, { type: "daemon.ready" }, NOON + 1);
        expect(yield* get(id)).toMatchObject({
          status: "active",
          activeAt: NOON + 1,
          endedAt: null,
          sessionId,
        });
        expect(yield* unsettled).toEqual([{ id, newest: yield* newestCommand }]);
        const lost = { code: "sandbox_lost", message: "gone" } as const;
        yield* tellSandbox(id, { type: "sandbox.lost", failure: lost }, NOON + 2);
        expect(yield* newest(sessionId)).toMatchObject({
          status: "error",
          failure: lost,
          endedAt: NOON + 2,
        });
        const next = yield* openSandbox(sessionId, NOON + 3);
        expect((yield* newest(sessionId))?.id).toBe(next.id);
      }),
    );

    check(
      "keeps the image with which it boots",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get, noteImage } = yield* Sandboxes;
        const { id } = yield* openSandbox(yield* admitSession(world));
        expect(yield* get(id)).toMatchObject({ image: null });
        yield* noteImage(id, "debian:12");
        yield* noteImage(id, "node-tools");
        yield* noteImage(randomUUID(), "other");
        expect(yield* get(id)).toMatchObject({ image: "node-tools" });
      }),
    );

    check(
      "notes and reports the start of each boot, as long as it is provisioning",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get, beginBoot } = yield* Sandboxes;
        const sessionId = yield* admitSession(world);
        const { id } = yield* openSandbox(sessionId);
        expect(yield* get(id)).toMatchObject({ bootStartedAt: null });
        const told = yield* followSession({ projectId: world.projectId, sessionId }, "sandbox.boot_started");
        for (const now of [NOON + 5, NOON + 9]) {
          expect(yield* beginBoot(id, { now, deadlineAt: now + 100 })).toBe(true);
          expect(yield* get(id)).toMatchObject({ bootStartedAt: now, bootDeadlineAt: now + 100 });
        }
        expect((yield* told(2)).map(({ at, data }) => ({ at, data }))).toEqual([
          { at: NOON + 5, data: { sandbox_id: id } },
          { at: NOON + 9, data: { sandbox_id: id } },
        ]);
        yield* tellSandbox(id, { type: "daemon.ready" }, NOON + 10);
        expect(yield* beginBoot(id, { now: NOON + 11, deadlineAt: NOON + 12 })).toBe(false);
        expect(yield* beginBoot(randomUUID(), { now: NOON, deadlineAt: NOON })).toBe(false);
        expect(yield* get(id)).toMatchObject({ bootStartedAt: NOON + 9 });
      }),
    );

    check(
      "remembers how it must end while its work is saved",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get, memory } = yield* Sandboxes;
        const { id } = yield* openSandbox(yield* admitSession(world));
        yield* tellSandbox(id, { type: "daemon.ready" });
        yield* tellSandbox(id, { type: "archive.requested" });
        const snapshot = { state: "active", context: { ending: "archived", save: "try" } };
        expect((yield* memory.load(id))?.snapshot).toEqual(snapshot);
        yield* tellSandbox(id, { type: "work.saved", saved: NOTHING_TO_SAVE }, NOON + 9);
        expect(yield* get(id)).toMatchObject({ status: "archived", endedAt: NOON + 9 });
      }),
    );

    check(
      "keeps its record until it has ended and its commands are done [I9]",
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
      "is not opened for a session that has ended, or that now waits for another [I9, I18]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { open, get, unsettled } = yield* Sandboxes;
        const sessionId = yield* admitSession(world);
        const [late, later] = [randomUUID(), randomUUID()];
        const { snapshot, commands } = sandboxMachine.start({});
        const opening = (id: string) =>
          open({
            id,
            sessionId,
            provider: "simulated",
            nodeId: "node-1",
            bootDeadlineAt: NOON,
            snapshot,
            commands,
            serviceKeyHash: hash(),
            cliToken: { id: randomUUID(), hash: hash() },
            now: NOON,
          });
        yield* tellSession(sessionId, { type: "branch.created", commit: "a".repeat(40), sandboxId: late });
        yield* tellSession(sessionId, { type: "stop.requested" });
        yield* opening(late);
        yield* tellSession(sessionId, { type: "restart.requested", sandboxId: later });
        yield* opening(late);
        expect([yield* get(late), yield* unsettled]).toEqual([null, []]);
        yield* opening(later);
        expect((yield* get(later))?.status).toBe("provisioning");
        expect((yield* unsettled).map(({ id }) => id)).toEqual([later]);
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
          snapshot: { state: "provisioning", context: { ending: null } },
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
      "end with the session, before its sandbox is told, and with the sandbox [T03, I15]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { authenticate } = yield* Identity;
        const sessionId = yield* admitSession(world);
        const told = yield* openSandbox(sessionId);
        yield* tellSandbox(told.id, { type: "stop.requested" });
        for (const token of [told.cliHash, told.serviceKeyHash])
          expect(yield* authenticate(token, NOON)).toBe(null);
        const untold = yield* openSandbox(sessionId);
        for (const token of [untold.cliHash, untold.serviceKeyHash])
          expect(yield* authenticate(token, NOON)).not.toBe(null);
        yield* tellSession(sessionId, { type: "stop.requested" });
        for (const token of [untold.cliHash, untold.serviceKeyHash])
          expect(yield* authenticate(token, NOON)).toBe(null);
      }),
    );

    check(
      "include clone credentials, which end at their instant, with the sandbox, or with the session [G10, I15]",
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
        const untold = yield* openSandbox(sessionId);
        const second = { ...credential, hash: hash(), sandboxId: untold.id };
        yield* mint(second);
        expect(yield* find(second.hash, NOON)).toEqual(second);
        yield* tellSession(sessionId, { type: "stop.requested" });
        expect(yield* find(second.hash, NOON)).toBe(null);
      }),
    );
  });
};
