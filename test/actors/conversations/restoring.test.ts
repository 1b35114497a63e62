/** A booting sandbox gets its session's saved work (actors/sandboxes/restoring.ts). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { notRestored } from "../../../src/domain/save/saved.ts";
import {
  answered,
  openActorsWorld,
  READY,
  SPEC_OPTIONS,
  STARTING,
  until,
} from "../../support/world/actors.ts";

const FRESH = "01890000-0000-7000-8000-000000000001";
const FILES = new Map([["a.txt", "1"]]);

/** A session that has ended with saved work, and starts again. `boot` is what its new daemon says. */
const restarted = Effect.fnUntraced(function* (restore: "wanted" | "none") {
  const world = yield* openActorsWorld();
  const { script, saves } = world;
  saves.workspaces = { ...saves.workspaces, list: () => FILES };
  const { actors } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  yield* world.untilSession(id, "running");
  yield* answered(actors.session(id, { type: "stop.requested" }));
  yield* world.untilSession(id, "stopped");
  script.health = { ...STARTING, restore };
  yield* answered(
    actors.session(id, { type: "restart.requested", sandboxId: FRESH, restoreSaved: restore === "wanted" }),
  );
  return { ...world, id };
});

describe("a sandbox that waits for the saved work", () => {
  it.effect("gets it once, and the session says what came back", () =>
    Effect.gen(function* () {
      const { script, saves, id, session, untilSession } = yield* restarted("wanted");
      const written: string[] = [];
      saves.workspaces = {
        ...saves.workspaces,
        write: (sandboxId, files) => written.push(`${sandboxId} ${[...files.keys()].join()}`) > 0,
      };
      yield* until(Effect.sync(() => written.length > 0));
      yield* TestClock.adjust("10 seconds");
      script.health = { ...READY, restore: "done" };
      yield* untilSession(id, "running");
      expect(written).toEqual([`${FRESH} a.txt`]);
      expect((yield* session(id))?.restored).toMatchObject({ files: 1, error: null });
    }),
  );

  it.effect("is given it again if that failed, and goes on without it after half a minute", () =>
    Effect.gen(function* () {
      const { script, saves, id, session, untilSession } = yield* restarted("wanted");
      let tries = 0;
      saves.workspaces = { ...saves.workspaces, write: () => (tries += 1) < 0 };
      yield* TestClock.adjust("10 seconds");
      yield* until(Effect.sync(() => tries > 1));
      expect(script.given).toEqual([]);
      yield* TestClock.adjust("30 seconds");
      yield* until(Effect.sync(() => script.given.length > 0));
      expect(script.given[0]).toContain('"saves":[]');
      expect(script.given[0]).toContain("the sandbox did not answer");
      script.health = { ...READY, restore: "done" };
      yield* untilSession(id, "running");
      expect((yield* session(id))?.restored?.error).toBe("the sandbox did not answer");
    }),
  );

  it.effect("has ten minutes for it beside the boot's deadline, and starts with the restored part", () =>
    Effect.gen(function* () {
      const { script, saves, id, session, untilSession, statusOf } = yield* restarted("wanted");
      const never = Effect.never;
      saves.restoring = never;
      yield* TestClock.adjust(SPEC_OPTIONS.bootTimeoutMs * 4);
      expect(yield* statusOf(id)).toBe("provisioning");
      yield* TestClock.adjust("3 minutes");
      script.health = { ...READY, restore: "done" };
      yield* untilSession(id, "running");
      expect((yield* session(id))?.restored?.error).toContain("10 minutes");
    }),
  );
});

describe("a sandbox with a daemon that fetches the saved work itself", () => {
  it.effect("is taken at its word", () =>
    Effect.gen(function* () {
      const { script, id, session, untilSession } = yield* restarted("none");
      const restored = { ...notRestored("a file is locked"), wip: "c0ffee", files: 2 };
      script.health = { ...READY, restored };
      yield* untilSession(id, "running");
      expect(yield* session(id)).toMatchObject({ restored });
    }),
  );
});
