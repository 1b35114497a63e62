import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { renewCredential, type CloneCredential } from "../../../daemon/git/credential.ts";
import { HttpFailure } from "../../../daemon/http/client.ts";

const LIFE_MS = 3_600_000;
const credential = (expiresAtMs: number): CloneCredential => ({
  repoUrl: "http://platform.internal/v1/git/p.git",
  expiresAtMs,
  bootstrap: "done",
});

it.effect("renews a credential after 80 % of its lifetime, again and again", () =>
  Effect.gen(function* () {
    let fetched = 0;
    const fetch = Effect.sync(() => {
      fetched += 1;
      return credential(fetched * 0.8 * LIFE_MS + LIFE_MS);
    });
    yield* Effect.forkChild(renewCredential(credential(LIFE_MS), fetch, Effect.never));
    yield* TestClock.adjust(0.8 * LIFE_MS - 1);
    expect(fetched).toBe(0);
    yield* TestClock.adjust(1);
    expect(fetched).toBe(1);
    yield* TestClock.adjust(0.8 * LIFE_MS);
    expect(fetched).toBe(2);
  }),
);

it.effect("repeats a failed renewal before the old credential expires", () =>
  Effect.gen(function* () {
    let asked = 0;
    const fetch = Effect.suspend(() => {
      asked += 1;
      return asked < 3
        ? Effect.fail(new HttpFailure({ status: 503, message: "away" }))
        : Effect.succeed(credential(2 * LIFE_MS));
    });
    yield* Effect.forkChild(renewCredential(credential(LIFE_MS), fetch, Effect.never));
    yield* TestClock.adjust(0.8 * LIFE_MS);
    expect(asked).toBe(1);
    yield* TestClock.adjust("3 seconds");
    expect(asked).toBe(3);
  }),
);

it.effect("renews a refused credential, at the earliest one second after the last renewal", () =>
  Effect.gen(function* () {
    let fetched = 0;
    const fetch = Effect.sync(() => {
      fetched += 1;
      return credential(LIFE_MS);
    });
    yield* Effect.forkChild(renewCredential(credential(LIFE_MS), fetch, Effect.void));
    yield* TestClock.adjust(999);
    expect(fetched).toBe(0);
    yield* TestClock.adjust(1);
    expect(fetched).toBe(1);
    yield* TestClock.adjust(1000);
    expect(fetched).toBe(2);
  }),
);
