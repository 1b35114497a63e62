/** Conformance: filtered webhooks, the value of a secret that verifies, and refused webhooks. */
import { randomBytes } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { uuidV7 } from "../../../../src/domain/ids.ts";
import { Admissions, DELIVERY_WINDOW_MS } from "../../../../src/store/ports/triggers/admissions.ts";
import { Fires } from "../../../../src/store/ports/triggers/fires.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { Secrets } from "../../../../src/store/ports/projects/secrets.ts";
import {
  REFUSALS_KEPT_PER_PROJECT,
  WebhookRefusals,
  type WebhookRefusal,
} from "../../../../src/store/ports/triggers/webhook-refusals.ts";
import { type Check } from "../fixture.ts";
import { admitOne, fired } from "../../../support/world/sessions.ts";
import { accountOf, addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";

const FILTERED = { is: "skipped", reason: "filtered" } as const;

const checkFiltered = (check: Check): void => {
  describe("a filtered fire", () => {
    check(
      "leaves a row and starts nothing, with or without a free slot",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        for (const round of ["free", "full"]) {
          const wish = fired(world, { prompt: FILTERED, deliveryId: round, verifiedWith: "previous" });
          expect(yield* admitOne(world, wish)).toEqual({
            outcome: "skipped",
            reason: "filtered",
            fireId: wish.fire?.id,
          });
          expect(yield* (yield* Fires).get(wish.fire?.id ?? "")).toMatchObject({
            status: "skipped",
            reason: "filtered",
            sessionId: null,
            attempts: 0,
            verifiedWith: "previous",
          });
          yield* admitOne(world, fired(world));
        }
        expect(yield* accountOf(world)).toMatchObject({ activeSessions: 1, queuedFires: 1 });
        expect(yield* (yield* Projects).lastFired(world.projectId)).toEqual(new Map([["on-push", NOON]]));
      }),
    );

    check(
      "settles its delivery: a repeat starts nothing, whatever the filter says by then",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const first = fired(world, { prompt: FILTERED, deliveryId: "d-1" });
        yield* admitOne(world, first);
        for (const wish of [
          fired(world, { deliveryId: "d-1" }),
          fired(world, { deliveryId: "d-1", prompt: FILTERED }),
        ])
          expect(yield* admitOne(world, wish)).toMatchObject({
            outcome: "duplicate",
            fire: { id: first.fire?.id, status: "skipped" },
          });
        const late = NOON + DELIVERY_WINDOW_MS + 1;
        expect(yield* admitOne(world, fired(world, { deliveryId: "d-1" }, late))).toMatchObject({
          outcome: "admitted",
        });
        const { items } = yield* (yield* Sessions).list(world.projectId, {
          limit: 9,
          cursor: null,
          status: null,
        });
        expect(items).toHaveLength(1);
      }),
    );

    check(
      "does not undo its delivery's session, and ends its retries",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        yield* admitOne(world, fired(world, { deliveryId: "started" }));
        const again = fired(world, { deliveryId: "started", prompt: FILTERED });
        expect(yield* admitOne(world, again)).toMatchObject({
          outcome: "duplicate",
          fire: { status: "fired" },
        });
        const failed = fired(world, {
          deliveryId: "failed",
          prompt: { is: "too_large" },
          verifiedWith: "previous",
        });
        yield* admitOne(world, failed);
        const tried = fired(world, { deliveryId: "failed", prompt: FILTERED, verifiedWith: "current" });
        expect(yield* admitOne(world, tried)).toEqual({
          outcome: "skipped",
          reason: "filtered",
          fireId: failed.fire?.id,
        });
        expect(yield* (yield* Fires).get(failed.fire?.id ?? "")).toMatchObject({
          status: "skipped",
          verifiedWith: "current",
        });
      }),
    );

    check(
      "is decided with others of its batch, and not by a former version of its project",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const twice = [
          fired(world, { prompt: FILTERED, deliveryId: "d-1" }),
          fired(world, { deliveryId: "d-1" }),
          fired(world),
        ];
        const { admit } = yield* Admissions;
        const outcomes = (yield* admit(world.accountId, twice)).map(({ outcome }) => outcome);
        expect(outcomes).toEqual(["skipped", "duplicate", "admitted"]);
        const stale = { ...fired(world, { prompt: FILTERED }), projectVersion: 99 };
        expect(yield* admitOne(world, stale)).toEqual({ outcome: "stale" });
        expect(yield* (yield* Fires).get(stale.fire?.id ?? "")).toBeNull();
      }),
    );
  });
};

const envelope = (byte: number) => Uint8Array.from([byte]);

const checkPrevious = (check: Check): void => {
  describe("the previous value of a secret", () => {
    const begin = Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const { projectId, userId } = world;
      const { put, nextVersion } = yield* Secrets;
      const write = Effect.fnUntraced(function* (byte: number, previousUntil?: number) {
        const version = yield* nextVersion(projectId, "KEY");
        const by = { userId, now: NOON, ...(previousUntil !== undefined && { previousUntil }) };
        return yield* put({ projectId, name: "KEY", version, envelope: envelope(byte) }, by);
      });
      /**
       * Value and previous value as webhooks use them, and the previous one's expiry. Null if there is no previous
       * value.
       */
      const held = Effect.gen(function* () {
        const [state] = yield* (yield* Projects).states([projectId]);
        const [secret] = state?.secrets ?? [];
        const previous = secret?.previous ?? null;
        const former = previous === null ? null : [[...previous.envelope], previous.version, previous.until];
        return secret === undefined ? null : [[...secret.envelope], secret.version, former];
      });
      return { ...world, write, held };
    });

    check(
      "stays for the given time, with the version that it is encrypted for, and is never injected",
      Effect.gen(function* () {
        const { projectId, write, held } = yield* begin;
        expect(yield* write(1, NOON + 100)).toBe(true);
        expect(yield* held).toEqual([[1], 1, null]);
        expect(yield* write(2, NOON + 100)).toBe(false);
        expect(yield* held).toEqual([[2], 2, [[1], 1, NOON + 100]]);
        const { sealed, list } = yield* Secrets;
        expect((yield* sealed(projectId)).map((secret) => Array.from(secret.envelope))).toEqual([[2]]);
        expect((yield* list(projectId)).secrets[0]?.previousUntil).toBe(NOON + 100);
      }),
    );

    check(
      "is replaced by the next one, and is removed by a write that keeps none and with its secret",
      Effect.gen(function* () {
        const { projectId, write, held } = yield* begin;
        yield* write(1);
        yield* write(2, NOON + 100);
        yield* write(3, NOON + 50);
        expect(yield* held).toEqual([[3], 3, [[2], 2, NOON + 50]]);
        yield* write(4);
        expect(yield* held).toEqual([[4], 4, null]);
        yield* write(5, NOON + 50);
        const { remove } = yield* Secrets;
        expect(yield* remove(projectId, "KEY", NOON)).toBe(true);
        expect(yield* held).toBeNull();
        // A value that is written after a deletion has no previous one.
        expect(yield* write(6, NOON + 50)).toBe(true);
        expect(yield* held).toEqual([[6], 6, null]);
      }),
    );

    check(
      "is removed once its time is over, and its holders are notified",
      Effect.gen(function* () {
        const { projectId, write, held } = yield* begin;
        yield* write(1);
        yield* write(2, NOON + 100);
        const { prunePrevious, list } = yield* Secrets;
        const version = Effect.map((yield* Projects).get(projectId), (project) => project?.version ?? 0);
        const [before, { revision }] = [yield* version, yield* list(projectId)];
        expect(yield* prunePrevious(NOON + 99)).toBe(0);
        expect(yield* version).toBe(before);
        expect(yield* prunePrevious(NOON + 100)).toBe(1);
        expect(yield* prunePrevious(NOON + 100)).toBe(0);
        expect(yield* held).toEqual([[2], 2, null]);
        expect(yield* version).toBe(before + 1);
        // The previous value reaches no sandbox.
        expect((yield* list(projectId)).revision).toBe(revision);
      }),
    );
  });
};

const refusal = (
  { projectId }: Pick<World, "projectId">,
  at: number,
  fields: Partial<WebhookRefusal> = {},
) => ({
  id: uuidV7(at, randomBytes(16)),
  projectId,
  at,
  slug: "push",
  status: 401,
  code: "invalid_signature",
  reason: "signature_missing",
  deliveryId: null,
  event: null,
  declaredBytes: null,
  bodyBytes: null,
  address: "::1",
  forwardedFor: null,
  ...fields,
});

const checkRefusals = (check: Check): void => {
  describe("refused webhooks", () => {
    const all = { limit: 2000, cursor: null };

    check(
      "are listed as they were added, newest first and in pages, of one project",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const other = yield* addProject(world);
        const { add, list } = yield* WebhookRefusals;
        const whole = refusal(world, NOON + 2, {
          deliveryId: "d",
          event: "push",
          declaredBytes: 2 ** 40,
          bodyBytes: 0,
          forwardedFor: "\u00ff",
        });
        const rows = [refusal(world, NOON), whole, refusal(world, NOON + 1)];
        yield* add([]);
        yield* add([...rows, refusal({ projectId: other }, NOON)]);
        yield* add(rows.slice(0, 1));
        const first = yield* list(world.projectId, { limit: 2, cursor: null });
        expect(first.items).toEqual([whole, rows[2]]);
        const second = yield* list(world.projectId, { limit: 2, cursor: first.nextCursor });
        expect(second).toEqual({ items: [rows[0]], nextCursor: null });
        expect((yield* list(other, all)).items).toHaveLength(1);
        yield* add([refusal(world, NOON + 3, { slug: "tag" })]);
        const ofPush = yield* list(world.projectId, { limit: 2, cursor: null, slug: "push" });
        expect(ofPush.items).toEqual(first.items);
        expect((yield* list(world.projectId, { ...all, slug: "tag" })).items).toHaveLength(1);
        expect((yield* Effect.flip(list(other, { limit: 1, cursor: "x" })))._tag).toBe("BadCursor");
      }),
    );

    check(
      "are kept up to a number for each project, and only for an existing project",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const other = yield* addProject(world);
        const { add, list } = yield* WebhookRefusals;
        const many = Array.from({ length: REFUSALS_KEPT_PER_PROJECT }, (_, n) => refusal(world, NOON + n));
        yield* add(many);
        const stranger = "00000000-0000-7000-8000-00000000ffff";
        yield* add([
          refusal(world, NOON + 10_000),
          refusal({ projectId: stranger }, NOON),
          refusal({ projectId: other }, NOON),
        ]);
        const { items } = yield* list(world.projectId, all);
        expect(items).toHaveLength(REFUSALS_KEPT_PER_PROJECT);
        expect([items[0]?.at, items.at(-1)?.at]).toEqual([NOON + 10_000, NOON + 1]);
        expect((yield* list(other, all)).items).toHaveLength(1);
        expect((yield* list(stranger, all)).items).toEqual([]);
      }),
    );

    check(
      "are removed when their time is over",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { add, list, prune } = yield* WebhookRefusals;
        yield* add([refusal(world, NOON), refusal(world, NOON + 1)]);
        expect(yield* prune(NOON)).toBe(0);
        expect(yield* prune(NOON + 1)).toBe(1);
        expect((yield* list(world.projectId, all)).items.map(({ at }) => at)).toEqual([NOON + 1]);
      }),
    );
  });
};

export const checkWebhooks = (check: Check): void => {
  checkFiltered(check);
  checkPrevious(check);
  checkRefusals(check);
};
