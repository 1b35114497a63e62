import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { expect } from "vitest";
import { pushRefs } from "../../../src/git/upstream/push.ts";
import { Pause, PauseSwitch } from "../../../src/ground/pause.ts";

it.effect("a restored copy that is paused pushes nothing to another server, and says why", () =>
  Effect.gen(function* () {
    const pause = new PauseSwitch();
    pause.since = 0;
    const remote = { address: "/nowhere", dialled: "nowhere", config: {}, environment: {}, stallMs: 1 };
    const updates = [{ ref: "refs/heads/main", oldCommit: "0".repeat(40), newCommit: "1".repeat(40) }];
    const error = yield* Effect.flip(
      pushRefs(remote, { repository: "/nowhere", updates, atomic: true }),
    ).pipe(Effect.provideService(Pause, pause));
    expect(error).toMatchObject({
      code: "refused",
      message: expect.stringContaining("platform admin resume") as string,
    });
  }),
);
