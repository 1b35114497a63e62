/** Conformance: what sessions say of their saved work. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { NOTHING_TO_SAVE, notRestored, notSaved, type Saved } from "../../../../src/domain/save/saved.ts";
import { Audit } from "../../../../src/store/ports/audit.ts";
import { Operations } from "../../../../src/store/ports/operations.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { admitSession, openSandbox, tellSandbox, tellSession } from "../../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";
import { type Check, followSession } from "../fixture.ts";

const branched = (sandboxId: string) =>
  ({ type: "branch.created", commit: "a".repeat(40), sandboxId }) as const;

/** A running session, with its sandbox. */
const running = Effect.fnUntraced(function* (world: Parameters<typeof admitSession>[0]) {
  const id = yield* admitSession(world);
  const { id: sandboxId } = yield* openSandbox(id);
  yield* tellSession(id, branched(sandboxId), NOON);
  yield* tellSandbox(sandboxId, { type: "daemon.ready" });
  yield* tellSession(id, { type: "sandbox.live", sandboxId }, NOON);
  return { id, sandboxId };
});

export const checkSaves = (check: Check): void => {
  describe("a session's saved work", () => {
    check(
      "says how far a save of its current sandbox is, and what its current sandbox brought back",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get, noteRestored, noteSaved, forgetEarlier, nodesWithSaves } = yield* Sessions;
        const id = yield* admitSession(world);
        const told = yield* followSession({ projectId: world.projectId, sessionId: id }, "session.saved");
        const [first, second] = [randomUUID(), randomUUID()];
        yield* tellSession(id, branched(first), NOON);
        yield* tellSession(id, { type: "sandbox.live", sandboxId: first }, NOON + 1);
        const part: Saved = {
          ...notSaved("one path is missing"),
          state: "partial",
          at: "2026-02-01T12:00:00.000Z",
          wip: "c0ffee",
          files: 2,
          pending: [{ path: "a", reason: "too large", count: 3 }],
          node: "node-1",
          earlier: [{ id: second, at: "2026-02-01T11:00:00.000Z", files: 1, commits: 0, node: "node-0" }],
        };
        yield* noteSaved(id, { sandboxId: second, saved: part });
        expect(yield* get(id)).toMatchObject({ saved: null });
        yield* noteSaved(id, { sandboxId: first, saved: part });
        yield* noteSaved(id, { sandboxId: first, saved: part });
        expect(yield* get(id)).toMatchObject({ status: "running", saved: part });
        const { at } = part;
        expect((yield* told(1)).map(({ data }) => data)).toEqual([
          { state: "partial", at, files: 2, commits: 0, pending: 3 },
        ]);
        expect(yield* nodesWithSaves(world.projectId)).toEqual(["node-0", "node-1"]);
        expect(yield* nodesWithSaves(randomUUID())).toEqual([]);
        yield* forgetEarlier(id, second);
        expect((yield* get(id))?.saved).toEqual({ ...part, earlier: [] });
        const restored = { ...notRestored("no"), wip: "c0ffee", error: null };
        yield* noteRestored(id, { sandboxId: second, restored });
        expect(yield* get(id)).toMatchObject({ restored: null });
        yield* noteRestored(id, { sandboxId: first, restored });
        expect(yield* get(id)).toMatchObject({ restored });
      }),
    );

    check(
      "is on the audit record with what is kept, if its person was deactivated",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const id = yield* admitSession(world);
        const sandboxId = randomUUID();
        yield* tellSession(id, branched(sandboxId), NOON);
        yield* tellSession(id, { type: "sandbox.live", sandboxId }, NOON + 1);
        yield* tellSession(id, { type: "user.deactivated" }, NOON + 2);
        const saved = {
          ...NOTHING_TO_SAVE,
          state: "partial",
          files: 3,
          pending: [{ path: "a", reason: "limit" }],
        } as const;
        yield* tellSession(id, { type: "sandbox.ended", sandboxId, saved }, NOON + 3);
        const { list } = yield* Audit;
        const everything = { actorId: null, action: null, since: null, until: null, cursor: null, limit: 5 };
        const { accountId, projectId } = world;
        expect((yield* list({ ...everything, accountId, projectId })).items).toMatchObject([
          {
            action: "session.dismissed",
            target: id,
            actor: { kind: "service" },
            at: NOON + 3,
            changes: { saved: "partial", files: 3, commits: 0, missing: 1 },
          },
        ]);
      }),
    );

    check(
      "stays unsaved until a save is complete or it ends, and says so once",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get, list, noteSaved } = yield* Sessions;
        const id = yield* admitSession(world);
        const told = yield* followSession(
          { projectId: world.projectId, sessionId: id },
          "session.work_unsaved",
        );
        const sandboxId = randomUUID();
        yield* tellSession(id, branched(sandboxId), NOON);
        yield* tellSession(id, { type: "sandbox.live", sandboxId }, NOON + 1);
        const saved = { ...notSaved("no room"), pending: [{ path: "a", reason: "no room" }] };
        const stay = function* (tries: number) {
          yield* tellSession(id, { type: "idle.elapsed" }, NOON + tries);
          const unsaved = { since: NOON + 1, tries, nextAt: NOON + 60_000 * tries };
          const kept = { type: "sandbox.kept", sandboxId, order: "pause", saved, unsaved } as const;
          yield* tellSession(id, kept, NOON + tries);
          return unsaved;
        };
        yield* stay(1);
        const unsaved = yield* stay(2);
        expect(yield* get(id)).toMatchObject({ status: "running", ending: null, saved, unsaved });
        const waiting = { status: null, turn: "requires_action", cursor: null, limit: 5 } as const;
        expect((yield* list(world.projectId, waiting)).items).toMatchObject([{ id }]);
        const { watch } = yield* Operations;
        expect((yield* watch).unsaved).toBe(1);
        const stays = { reason: "idle", pending: 1, stays: true };
        expect((yield* told(1)).map(({ data }) => data)).toEqual([stays]);
        yield* noteSaved(id, { sandboxId, saved: NOTHING_TO_SAVE });
        expect(yield* get(id)).toMatchObject({ unsaved: null });
        expect((yield* watch).unsaved).toBe(0);
        yield* stay(1);
        yield* tellSession(id, { type: "idle.elapsed", isLast: true }, NOON + 5);
        yield* tellSession(id, { type: "sandbox.ended", sandboxId, saved }, NOON + 6);
        expect(yield* get(id)).toMatchObject({ status: "stopped", stopReason: "idle", saved, unsaved: null });
        expect((yield* told(3)).map(({ data }) => data)).toEqual([stays, stays, { ...stays, stays: false }]);
      }),
    );

    check(
      "is one too many if half of its account's slots hold sessions that are unsaved for a shorter time",
      Effect.gen(function* () {
        const world = yield* makeWorld(4);
        const { runningOn } = yield* Sessions;
        const ids = yield* Effect.forEach([1, 2, 3], (since) =>
          Effect.gen(function* () {
            const { id, sandboxId } = yield* running(world);
            yield* tellSession(id, { type: "idle.elapsed" }, NOON);
            const unsaved = { since, tries: 1, nextAt: NOON };
            const kept = { type: "sandbox.kept", order: "pause", saved: notSaved("no") } as const;
            yield* tellSession(id, { ...kept, sandboxId, unsaved }, NOON);
            return id;
          }),
        );
        const rows = yield* runningOn("node-1");
        expect(ids.map((id) => rows.find((row) => row.id === id)?.isSurplus)).toEqual([true, false, false]);
        expect(rows.find(({ id }) => id === ids[1])?.unsaved).toEqual({ since: 2, tries: 1, nextAt: NOON });
      }),
    );
  });
};
