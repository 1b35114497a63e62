/** A sandbox with a daemon that is too old for an upgraded service (actors/sandboxes/outdated-daemon.ts). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { contentText } from "../../../src/domain/conversation/conversation.ts";
import { NOTHING_TO_SAVE } from "../../../src/domain/save/saved.ts";
import { StartLimits, type StartLimitsPort } from "../../../src/services/sessions/start-limits.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { answered, openActorsWorld, READY, until } from "../../support/world/actors.ts";
import { posted } from "../../support/world/conversation-steps.ts";
import { NOON } from "../../support/world/world.ts";

const WORK = { ...NOTHING_TO_SAVE, wip: "c0ffee", files: 1 };
const MESSAGE = "01890000-0000-7000-8000-00000000000a";

/** A session that ran when the service was stopped for an upgrade. `begin` starts the new version. */
const upgraded = Effect.gen(function* () {
  const world = yield* openActorsWorld({ cap: 1 });
  const { script, inPorts } = world;
  world.saves.scripted = () => Effect.succeed(WORK);
  const { actors, end } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  yield* world.untilSession(id, "running");
  const conversations = yield* inPorts(Conversations);
  yield* conversations.open(id, NOON);
  const old = (yield* world.newestSandbox(id))?.id ?? "";
  const post = Effect.suspend(() => answered(actors.conversation(id, posted(MESSAGE))));
  const turnOld = Effect.sync(() => {
    script.isOutdated = (sandboxId) => sandboxId === old;
  });
  const notes = Effect.map(conversations.page(id, { before: null, limit: 50 }), (page) =>
    (page?.items ?? []).flatMap(({ kind, content }) => (kind === "note" ? [contentText(content)] : [])),
  );
  return { ...world, id, old, end, post, turnOld, notes, conversations };
});

describe("a sandbox whose daemon is too old for an upgraded service", () => {
  it.effect("is saved and stopped, gives its slot back, and the conversation says so once", () =>
    Effect.gen(function* () {
      const {
        id,
        end,
        turnOld,
        begin,
        session,
        untilSession,
        newestSandbox,
        running,
        notes,
        inPorts,
        world,
      } = yield* upgraded;
      yield* end;
      yield* turnOld;
      const life = yield* begin;
      yield* untilSession(id, "stopped");
      expect(yield* session(id)).toMatchObject({ stopReason: "outdated", saved: WORK });
      yield* until(Effect.map(running, (ids) => ids.length === 0));
      expect(yield* newestSandbox(id)).toMatchObject({ status: "archived" });
      const account = yield* Effect.flatMap(inPorts(Identity), ({ account: get }) => get(world.accountId));
      expect(account?.activeSessions).toBe(0);
      yield* life.end;
      yield* begin;
      const [note, ...more] = yield* notes;
      expect(note).toContain("too old for the new version");
      expect(more).toEqual([]);
    }),
  );

  it.effect("starts again with its saved work if a message waits", () =>
    Effect.gen(function* () {
      const { id, old, end, post, turnOld, begin, session, newestSandbox, untilSession } = yield* upgraded;
      yield* post;
      yield* end;
      yield* turnOld;
      yield* begin;
      yield* until(Effect.map(newestSandbox(id), (row) => row !== null && row.id !== old));
      yield* untilSession(id, "running");
      expect(yield* session(id)).toMatchObject({ restoreSaved: true, stopReason: null });
    }),
  );

  it.effect("stays stopped if a limit of spend refuses its start, although a message waits", () => {
    const asked: string[] = [];
    const limits: StartLimitsPort = {
      refuseWaiting: () => Effect.succeed(false),
      refusal: ({ id }) =>
        Effect.sync(() => {
          asked.push(id);
          return "its calls could not be counted";
        }),
    };
    return Effect.gen(function* () {
      const { id, old, end, post, turnOld, begin, session, newestSandbox } = yield* upgraded;
      yield* post;
      yield* end;
      yield* turnOld;
      yield* begin;
      yield* until(Effect.sync(() => asked.includes(id)));
      yield* TestClock.adjust("10 seconds");
      expect(yield* session(id)).toMatchObject({ status: "stopped", stopReason: "outdated" });
      expect(yield* newestSandbox(id)).toMatchObject({ id: old });
    }).pipe(Effect.provideService(StartLimits, limits));
  });
});

describe("a session whose sandbox boots when the service is upgraded", () => {
  it.effect("gets another sandbox, which is not too old", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld();
      const { script, sandboxes } = world;
      script.health = null;
      const { actors, end } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* until(Effect.map(world.running, (ids) => ids.length === 1));
      yield* end;
      script.health = READY;
      let asked = 0;
      script.isOutdated = () => (asked += 1) === 1;
      const spec = Effect.map(sandboxes.all, (all) => [...all.values()].map((one) => one.spec));
      const [first, ...others] = yield* spec;
      expect(others).toEqual([]);
      yield* world.begin;
      yield* world.untilSession(id, "running");
      const [second] = yield* spec;
      expect(second).toEqual(first);
      expect(second).not.toBe(first);
    }),
  );
});
