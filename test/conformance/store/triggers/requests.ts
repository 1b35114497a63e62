/** Conformance: stored requests of fires, and how long they and the ledger are kept. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Admissions } from "../../../../src/store/ports/triggers/admissions.ts";
import { Fires, type StoredRequest } from "../../../../src/store/ports/triggers/fires.ts";
import { type Check } from "../fixture.ts";
import { admitOne, fired } from "../../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";

const body = (text: string): StoredRequest => ({
  body: Buffer.from(text),
  encoding: "identity",
  headers: { contentType: "application/json", userAgent: null, forwardedFor: "::1" },
});

export const checkRequests = (check: Check): void => {
  describe("the request of a fire", () => {
    check(
      "is stored byte for byte from the last attempt, and not for a repeated delivery",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { request } = yield* Fires;
        const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
        const first = fired(world, {
          deliveryId: "d-1",
          prompt: { is: "too_large" },
          request: { body: bytes, encoding: "deflate", headers: null },
        });
        const id = first.fire?.id ?? "";
        yield* admitOne(world, first);
        const kept = yield* request(id);
        expect([...(kept?.body ?? [])]).toEqual([...bytes]);
        expect(kept).toMatchObject({ encoding: "deflate", headers: null });
        yield* admitOne(world, fired(world, { deliveryId: "d-1", request: body("second") }));
        const second = yield* request(id);
        expect(Buffer.from(second?.body ?? []).toString()).toBe("second");
        expect(second).toMatchObject({ encoding: "identity", headers: body("").headers });
        const repeated = fired(world, { deliveryId: "d-1", request: body("third") });
        yield* admitOne(world, repeated);
        expect(yield* request(repeated.fire?.id ?? "")).toBe(null);
        expect(Buffer.from((yield* request(id))?.body ?? []).toString()).toBe("second");
      }),
    );

    check(
      "is removed if its delivery is repeated with a body that is too large",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { request, prune } = yield* Fires;
        const failing = { deliveryId: "d-1", prompt: { is: "too_large" } } as const;
        const first = fired(world, { ...failing, request: body("first") });
        yield* admitOne(world, first);
        yield* admitOne(world, fired(world, { deliveryId: "d-1", request: null }));
        expect(yield* request(first.fire?.id ?? "")).toBe(null);
        // Its bytes were subtracted, so nothing is left to prune.
        expect(yield* prune({ before: 0, requestBytes: 0 })).toBe(0);
      }),
    );

    check(
      "is also removed if both attempts are admitted together",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { admit } = yield* Admissions;
        const { request } = yield* Fires;
        const failing = { deliveryId: "d-1", prompt: { is: "too_large" } } as const;
        const first = fired(world, { ...failing, request: body("first") });
        const second = fired(world, { deliveryId: "d-1", request: null });
        const answers = yield* admit(world.accountId, [first, second]);
        expect(answers.map(({ outcome }) => outcome)).toEqual(["failed", "admitted"]);
        expect(yield* request(first.fire?.id ?? "")).toBeNull();
      }),
    );

    check(
      "is removed when an account has too many, the oldest first, and the ledger stays",
      Effect.gen(function* () {
        const world = yield* makeWorld(9);
        const { prune, request, get } = yield* Fires;
        const ids: string[] = [];
        for (const [index, text] of ["aaaa", "bbbb", "cccc"].entries()) {
          const wanted = fired(world, { request: body(text) }, NOON + index);
          yield* admitOne(world, wanted);
          ids.push(wanted.fire?.id ?? "");
        }
        const untilDone = (requestBytes: number) =>
          Effect.repeat(prune({ before: 0, requestBytes }), { until: (removed) => removed === 0 });
        yield* untilDone(12);
        expect((yield* Effect.forEach(ids, request)).map((kept) => kept === null)).toEqual([
          false,
          false,
          false,
        ]);
        yield* untilDone(9);
        expect((yield* Effect.forEach(ids, request)).map((kept) => kept === null)).toEqual([
          true,
          false,
          false,
        ]);
        yield* untilDone(0);
        expect((yield* Effect.forEach(ids, request)).map((kept) => kept === null)).toEqual([
          true,
          true,
          true,
        ]);
        expect((yield* Effect.forEach(ids, get)).map((fire) => fire?.status)).toEqual([
          "fired",
          "fired",
          "fired",
        ]);
      }),
    );

    check(
      "is removed with its old row, but not while it waits",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { prune, request, get } = yield* Fires;
        const started = fired(world, { request: body("a") }, NOON);
        const waiting = fired(world, { request: body("b") }, NOON);
        const later = fired(world, { kind: "manual", prompt: { is: "too_large" } }, NOON + 10);
        for (const wanted of [started, waiting, later]) yield* admitOne(world, wanted);
        const limits = { before: NOON + 5, requestBytes: 1000 };
        yield* Effect.repeat(prune(limits), { until: (removed) => removed === 0 });
        const ids = [started, waiting, later].map(({ fire }) => fire?.id ?? "");
        expect((yield* Effect.forEach(ids, get)).map((fire) => fire?.status)).toEqual([
          undefined,
          "queued",
          "failed",
        ]);
        expect((yield* Effect.forEach(ids, request)).map((kept) => kept?.body.length)).toEqual([
          undefined,
          1,
          undefined,
        ]);
      }),
    );
  });
};
