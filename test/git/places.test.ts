import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { describe, expect } from "vitest";
import { makePlaces } from "../../src/git/places.ts";

describe("the slots for git", () => {
  it.effect(
    "are limited in total and for each repository, and are passed on when they become free [T09]",
    () =>
      Effect.gen(function* () {
        const take = makePlaces({ inAll: 3, perRepository: 2 });
        let [now, most] = [0, 0];
        const ofBusy = { now: 0, most: 0 };
        const go = yield* Deferred.make<void>();
        const serve = (projectId: string) =>
          Effect.scoped(
            Effect.gen(function* () {
              yield* take(projectId);
              now += 1;
              most = Math.max(most, now);
              if (projectId === "busy") {
                ofBusy.now += 1;
                ofBusy.most = Math.max(ofBusy.most, ofBusy.now);
              }
              yield* Deferred.await(go);
              now -= 1;
              if (projectId === "busy") ofBusy.now -= 1;
            }),
          );
        const projects = ["busy", "busy", "busy", "busy", "quiet", "other", "third"];
        const served = yield* Effect.forkChild(Effect.forEach(projects, serve, { concurrency: "unbounded" }));
        yield* Effect.yieldNow;
        yield* Deferred.succeed(go, undefined);
        yield* Fiber.join(served);
        expect([most, ofBusy.most, now]).toEqual([3, 2, 0]);
      }),
  );
});
