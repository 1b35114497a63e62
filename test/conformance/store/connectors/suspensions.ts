/** Suspended own credentials: domain/connector/own-credential.ts O1 to O3. */
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { Suspensions } from "../../../../src/store/ports/connectors/suspensions.ts";
import { type Check } from "../fixture.ts";
import { admitSession } from "../../../support/world/sessions.ts";
import { addPerson, makeWorld, NOON } from "../../../support/world/world.ts";

export const checkSuspensions = (check: Check): void => {
  describe("suspended own credentials", () => {
    check(
      "have the first act, for the session and for those below it, until it ends [K20]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const suspensions = yield* Suspensions;
        const [id, name] = [yield* addPerson(world), "Ben"];
        const parent = yield* admitSession(world);
        const child = yield* admitSession(world, { parentSessionId: parent });
        const other = yield* admitSession(world);
        expect(yield* suspensions.get(child)).toBe(null);
        yield* suspensions.suspend(parent, { userId: id, act: "message", now: NOON });
        yield* suspensions.suspend(parent, { userId: world.userId, act: "terminal", now: NOON + 1 });
        const first = { sessionId: parent, by: { id, name }, act: "message", at: NOON };
        expect(yield* suspensions.get(parent)).toEqual(first);
        expect(yield* suspensions.get(child)).toEqual(first);
        expect(yield* suspensions.get(other)).toBe(null);
        yield* suspensions.suspend(child, { userId: id, act: "port", now: NOON + 2 });
        expect(yield* suspensions.get(child)).toMatchObject({ sessionId: child, act: "port" });
        expect(yield* suspensions.end(child)).toBe(true);
        expect(yield* suspensions.get(child)).toEqual(first);
        expect(yield* suspensions.end(parent)).toBe(true);
        expect(yield* suspensions.end(parent)).toBe(false);
        expect(yield* suspensions.get(child)).toBe(null);
      }),
    );
  });
};
