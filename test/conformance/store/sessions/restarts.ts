/** Conformance: sessions that boot again. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { NOTHING_TO_SAVE } from "../../../../src/domain/save/saved.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { type Check } from "../fixture.ts";
import { admitSession, tellSession } from "../../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";

const branched = (sandboxId: string) =>
  ({ type: "branch.created", commit: "a".repeat(40), sandboxId }) as const;
const SAVED = { ...NOTHING_TO_SAVE, wip: "c0ffee", files: 1 };

export const checkRestarts = (check: Check): void => {
  describe("a session", () => {
    check(
      "keeps a restart that was asked for during a stop until it takes place, once",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get } = yield* Sessions;
        const { account } = yield* Identity;
        const id = yield* admitSession(world);
        const [first, second] = [randomUUID(), randomUUID()];
        yield* tellSession(id, branched(first), NOON);
        yield* tellSession(id, { type: "sandbox.live", sandboxId: first }, NOON + 1);
        const before = yield* get(id);
        yield* tellSession(id, { type: "stop.requested" }, NOON + 2);
        expect(yield* get(id)).toMatchObject({ status: "running", ending: "requested" });
        const wish = { type: "restart.requested", sandboxId: second, restoreSaved: true } as const;
        yield* tellSession(id, wish, NOON + 3);
        yield* tellSession(id, { ...wish, sandboxId: randomUUID() }, NOON + 3);
        yield* tellSession(id, { type: "sandbox.ended", sandboxId: first, saved: SAVED }, NOON + 60_000);
        expect(yield* get(id)).toMatchObject({
          status: "stopped",
          ending: null,
          restarts: true,
          saved: SAVED,
        });
        const { list } = yield* Sessions;
        const page = { limit: 10, cursor: null, status: null };
        const queued = Effect.map(list(world.projectId, { ...page, activities: ["queued"] }), ({ items }) =>
          items.map((item) => item.id),
        );
        expect(yield* queued).toEqual([id]);
        expect((yield* account(world.accountId))?.activeSessions).toBe(0);
        const { memory } = yield* Sessions;
        const wishes = Effect.map(memory.load(id), (loaded) =>
          loaded?.pending.flatMap(({ command }) => (command.type === "restartAfterStop" ? [command] : [])),
        );
        expect(yield* wishes).toEqual([{ type: "restartAfterStop", sandboxId: second, restoreSaved: true }]);
        yield* tellSession(id, { ...wish, afterStop: true }, NOON + 60_001);
        expect(yield* get(id)).toMatchObject({
          status: "provisioning",
          sandboxId: second,
          restoreSaved: true,
          restarts: false,
          bootDeadlineAt: (before?.bootDeadlineAt ?? 0) + 60_001,
        });
        expect(yield* queued).toEqual([]);
        expect((yield* account(world.accountId))?.activeSessions).toBe(1);
        yield* tellSession(id, { type: "sandbox.live", sandboxId: second }, NOON + 60_001);
        expect(yield* get(id)).toMatchObject({ status: "running", sandboxId: second });
      }),
    );
  });
};
