/** Commands that an earlier version left behind in the outbox are done by this one (upgrade.md). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { NOTHING_TO_SAVE } from "../../../src/domain/save/saved.ts";
import { session as machine, type SessionCommand } from "../../../src/machines/session.ts";
import { Sandboxes } from "../../../src/store/ports/sessions/sandboxes.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { openActorsWorld, until } from "../../support/world/actors.ts";
import { NOON } from "../../support/world/world.ts";

const WORK = { ...NOTHING_TO_SAVE, wip: "c0ffee", files: 1 };

describe("a command of the first kept version", () => {
  it.effect("ends the sandbox of a session that was being stopped, and saves its work first", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld({ cap: 1 });
      world.saves.scripted = () => Effect.succeed(WORK);
      const { actors, end } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* world.untilSession(id, "running");
      const sandboxId = (yield* world.newestSandbox(id))?.id ?? "";
      yield* end;
      // That version's orders to end had no number, and did not say how to save.
      const command: SessionCommand = { type: "tearDownSandbox", sandboxId, as: "stopped" };
      const { memory } = yield* world.inPorts(Sessions);
      const known = yield* memory.load(id);
      if (known === null) throw new Error("no session");
      const event = { type: "stop.requested" } as const;
      const { snapshot } = machine.step(known.snapshot, event);
      const { ends: _none, ...context } = snapshot.context;
      yield* memory.save({
        id,
        version: known.version,
        event,
        before: known.snapshot,
        after: { ...snapshot, context },
        commands: [command],
        completes: null,
        now: NOON,
      });
      yield* world.begin;
      yield* world.untilSession(id, "stopped");
      expect(yield* world.session(id)).toMatchObject({ stopReason: "requested", saved: WORK });
      yield* until(Effect.map(world.running, (ids) => ids.length === 0));
      expect((yield* (yield* world.inPorts(Sandboxes)).memory.load(sandboxId))?.pending).toEqual([]);
    }),
  );
});
