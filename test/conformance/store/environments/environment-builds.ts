/** Conformance: builds of environments, their actors' memory, and which of them are kept. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import type { EnvironmentBuildEvent } from "../../../../src/machines/environment-build.ts";
import { EnvironmentBuilds } from "../../../../src/store/ports/projects/environment-builds.ts";
import { Events } from "../../../../src/store/ports/events.ts";
import type { Page } from "../../../../src/store/ports/page.ts";
import { Transitions } from "../../../../src/store/ports/transitions.ts";
import {
  BUILT,
  CANCELLED,
  endedBuild,
  newBuild,
  NOT_BUILT,
  openBuild,
  sourceOf,
  stepBuild,
} from "../../../support/world/environment-builds.ts";
import { addProject, makeWorld, NOON } from "../../../support/world/world.ts";
import { checkKeptBuilds } from "./environment-kept.ts";
import { checkBuildLogs } from "./environment-logs.ts";
import { type Check } from "../fixture.ts";

const { image } = BUILT;
const { failure } = NOT_BUILT;

const BEGUN: EnvironmentBuildEvent = { type: "build.begun" };

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
const K1 = { nodeId: "node-1", key: "k1" } as const;

const checkOpening = (check: Check): void => {
  check(
    "is opened once for each project, key and node, until it is over",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId, userId } = world;
      const { get, list, memory, unsettled } = yield* EnvironmentBuilds;
      const asked = { id: randomUUID(), cause: "asked", requestedBy: userId } as const;
      const first = {
        ...asked,
        projectId,
        nodeId: "node-1",
        source: sourceOf("k1"),
        status: "queued",
        tries: 0,
        step: null,
        bases: [],
        image: null,
        failure: null,
        createdAt: NOON,
        begunAt: null,
        endedAt: null,
      };
      expect(yield* openBuild(projectId, asked)).toEqual({ build: first, isNew: true });
      const loaded = yield* memory.load(asked.id);
      expect(loaded).toMatchObject({ version: 1, snapshot: { state: "queued" } });
      expect(loaded?.pending.map(({ command }) => command)).toEqual([{ type: "buildImage" }]);
      const second = randomUUID();
      expect(yield* openBuild(projectId, { id: second, now: NOON + 1 })).toEqual({
        build: first,
        isNew: false,
      });
      expect([yield* get(second), yield* memory.load(second)]).toEqual([null, null]);
      expect(ids(yield* unsettled)).toEqual([asked.id]);
      yield* newBuild(projectId, { source: sourceOf("k2") });
      yield* newBuild(projectId, { nodeId: "node-2" });
      yield* newBuild(yield* addProject(world));
      for (const [index, event] of [BUILT, NOT_BUILT, CANCELLED].entries()) {
        const live = (yield* openBuild(projectId))?.build.id ?? "";
        yield* stepBuild(live, [BEGUN]);
        expect(yield* openBuild(projectId)).toMatchObject({ isNew: false, build: { status: "resolving" } });
        yield* stepBuild(live, [event]);
        yield* newBuild(projectId, { now: NOON + 10 + index });
      }
      expect((yield* list(projectId, { limit: 100, cursor: null })).items).toHaveLength(6);
    }),
  );

  check(
    "is opened by one of many requests at once",
    Effect.gen(function* () {
      const { projectId } = yield* makeWorld(5);
      const { list, unsettled } = yield* EnvironmentBuilds;
      const requests = Array.from({ length: 8 }, () => openBuild(projectId));
      const answers = yield* Effect.all(requests, { concurrency: "unbounded" });
      expect(answers.filter((answer) => answer?.isNew)).toHaveLength(1);
      const [only, ...others] = (yield* list(projectId, { limit: 10, cursor: null })).items;
      expect(others).toEqual([]);
      expect(answers.map((answer) => answer?.build)).toEqual(answers.map(() => only));
      expect(yield* unsettled).toHaveLength(1);
    }),
  );

  check(
    "is not opened for a project that does not exist",
    Effect.gen(function* () {
      const { get, unsettled } = yield* EnvironmentBuilds;
      const id = randomUUID();
      expect(yield* openBuild(randomUUID(), { id })).toBe(null);
      expect([yield* get(id), yield* unsettled]).toEqual([null, []]);
    }),
  );
};

const checkLife = (check: Check): void => {
  check(
    "follows its actor: its tries, its instants, its step, and its end",
    Effect.gen(function* () {
      const { projectId } = yield* makeWorld(5);
      const { get, noteStep } = yield* EnvironmentBuilds;
      const id = yield* newBuild(projectId);
      const step = { step: 2, line: 5, instruction: "RUN make" };
      yield* stepBuild(id, [BEGUN, { type: "context.read" }], NOON + 1);
      yield* noteStep(id, step);
      expect(yield* get(id)).toMatchObject({ status: "building", tries: 1, step, begunAt: NOON + 1 });
      yield* stepBuild(id, [{ type: "steps.done" }], NOON + 3);
      expect(yield* get(id)).toMatchObject({ status: "exporting", step, begunAt: NOON + 1 });
      yield* stepBuild(id, [BEGUN], NOON + 4);
      expect(yield* get(id)).toMatchObject({ status: "resolving", tries: 2, step: null, begunAt: NOON + 4 });
      yield* noteStep(id, step);
      yield* stepBuild(id, [BUILT], NOON + 5);
      const ready = yield* get(id);
      expect(ready).toMatchObject({ status: "ready", image, failure: null, step, endedAt: NOON + 5 });
      yield* noteStep(id, { ...step, step: 3 });
      yield* noteStep(randomUUID(), step);
      expect(yield* get(id)).toEqual(ready);
      const other = yield* endedBuild(projectId, NOT_BUILT, { now: NOON + 6 });
      expect(yield* get(other)).toMatchObject({ status: "failed", image: null, failure, endedAt: NOON + 7 });
      const ended = yield* endedBuild(projectId, CANCELLED, { now: NOON + 8 });
      expect(yield* get(ended)).toMatchObject({ status: "cancelled", failure: { code: "cancelled" } });
    }),
  );

  check(
    "is saved by the actor that knows its newest version, and by no other",
    Effect.gen(function* () {
      const { projectId } = yield* makeWorld(5);
      const { get, memory } = yield* EnvironmentBuilds;
      const id = yield* newBuild(projectId);
      const former = yield* memory.load(id);
      if (former === null) return yield* Effect.die("no such build");
      yield* stepBuild(id, [BEGUN]);
      const before = [yield* get(id), yield* memory.load(id)];
      const { snapshot } = former;
      const after = { ...snapshot, state: "cancelled" as const };
      const late = { id, before: snapshot, after, event: CANCELLED, now: NOON + 9, completes: null } as const;
      const saving = memory.save({ ...late, version: former.version, commands: [{ type: "endBuild" }] });
      expect((yield* Effect.flip(saving))._tag).toBe("Fenced");
      const nobody = memory.save({ ...late, id: randomUUID(), version: 1, commands: [] });
      expect((yield* Effect.flip(nobody))._tag).toBe("Fenced");
      expect([yield* get(id), yield* memory.load(id)]).toEqual(before);
      expect(yield* memory.load(randomUUID())).toBe(null);
    }),
  );

  check(
    "stays unsettled until its commands are done, with the crashes of their handlers",
    Effect.gen(function* () {
      const { projectId } = yield* makeWorld(5);
      const { memory, unsettled } = yield* EnvironmentBuilds;
      const { list, waiting } = yield* Transitions;
      const id = yield* newBuild(projectId);
      yield* stepBuild(id, [BEGUN]);
      const [command] = (yield* memory.load(id))?.pending ?? [];
      expect(yield* unsettled).toEqual([{ id, newest: command?.id }]);
      yield* memory.crashed?.(id, command?.id ?? "", { reason: "no answer", now: NOON + 2 }) ?? Effect.void;
      const actor = { kind: "environment_build", id } as const;
      expect(yield* waiting(actor)).toEqual([
        { command: "buildImage", since: NOON, attempts: 1, lastError: "no answer" },
      ]);
      yield* stepBuild(id, [CANCELLED], NOON + 3);
      const pending = (yield* memory.load(id))?.pending ?? [];
      expect(pending.map((entry) => entry.command.type)).toEqual(["buildImage", "endBuild"]);
      expect(yield* unsettled).toEqual([{ id, newest: pending[1]?.id }]);
      yield* memory.complete(id, [pending[0]?.id ?? ""]);
      expect(yield* unsettled).toEqual([{ id, newest: pending[1]?.id }]);
      yield* memory.complete(id, [pending[1]?.id ?? ""]);
      yield* memory.complete(id, [pending[1]?.id ?? ""]);
      expect([yield* unsettled, yield* waiting(actor)]).toEqual([[], []]);
      const done = yield* newBuild(projectId, { source: sourceOf("k2") });
      yield* stepBuild(done, [BEGUN, BUILT]);
      expect(yield* unsettled).toEqual([]);
      const { items } = yield* list(actor, { limit: 10, cursor: null });
      expect(items.map(({ number, event, from, to }) => [number, event, from, to])).toEqual([
        [3, "cancel.requested", "resolving", "cancelled"],
        [2, "build.begun", "queued", "resolving"],
        [1, "created", null, "queued"],
      ]);
    }),
  );

  check(
    "is reported to the project's readers with each new status",
    Effect.gen(function* () {
      const { projectId } = yield* makeWorld(5);
      const { after } = yield* Events;
      const read = (cursor: string | null) => after({ projectId, sessionId: null, cursor, limit: 100 });
      const { cursor } = yield* read(null);
      const id = yield* newBuild(projectId);
      yield* openBuild(projectId);
      yield* stepBuild(id, [BEGUN, BEGUN, { type: "context.read" }, { type: "steps.done" }, BUILT]);
      // A commit becomes visible when no older transaction runs on the server, including other tests'. So readers retry.
      const { events } = yield* Effect.repeat(read(cursor), {
        until: (page) => page.events.length >= 5,
        schedule: Schedule.spaced("10 millis"),
      });
      expect(events.map(({ type, sessionId, at, data }) => [type, sessionId, at, data])).toEqual(
        [
          { at: NOON, status: "queued", previous: null },
          { at: NOON + 1, status: "resolving", previous: "queued" },
          { at: NOON + 3, status: "building", previous: "resolving" },
          { at: NOON + 4, status: "exporting", previous: "building" },
          { at: NOON + 5, status: "ready", previous: "exporting" },
        ].map(({ at, ...data }) => ["environment.build", null, at, { build_id: id, ...data }]),
      );
    }),
  );
};

const checkReads = (check: Check): void => {
  check(
    "is found as the newest of its key on its node, or on any, whatever its state",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const { forgetImages, newest } = yield* EnvironmentBuilds;
      const newestId = Effect.map(newest({ projectId, ...K1 }), (build) => build?.id);
      expect(yield* newest({ projectId, ...K1 })).toBe(null);
      // Of equal instants, the greater id is the newer one.
      const pair = [randomUUID(), randomUUID()].toSorted();
      for (const id of pair) yield* endedBuild(projectId, BUILT, { id });
      expect(yield* newestId).toBe(pair[1]);
      for (const [index, event] of [NOT_BUILT, CANCELLED, BUILT].entries()) {
        const id = yield* endedBuild(projectId, event, { now: NOON + 1 + index });
        yield* forgetImages([id]);
        expect(yield* newestId).toBe(id);
      }
      const live = yield* newBuild(projectId, { now: NOON + 6 });
      const later = { now: NOON + 7 };
      yield* newBuild(projectId, { ...later, source: sourceOf("k2") });
      const elsewhere = yield* newBuild(projectId, { ...later, nodeId: "node-2" });
      yield* newBuild(yield* addProject(world), later);
      expect(yield* newestId).toBe(live);
      expect((yield* newest({ projectId, key: K1.key }))?.id).toBe(elsewhere);
    }),
  );

  check(
    "is among the project's ready ones on its node, newest first, until its image is forgotten",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const { forgetImages, get, ready } = yield* EnvironmentBuilds;
      const of = { projectId, nodeId: "node-1" };
      const made: string[] = [];
      for (const [index, key] of ["k1", "k2", "k1"].entries())
        made.push(yield* endedBuild(projectId, BUILT, { source: sourceOf(key), now: NOON + index }));
      yield* endedBuild(projectId, NOT_BUILT, { now: NOON + 5 });
      yield* endedBuild(projectId, CANCELLED, { now: NOON + 6 });
      yield* newBuild(projectId, { now: NOON + 7 });
      yield* endedBuild(projectId, BUILT, { nodeId: "node-2", now: NOON + 8 });
      yield* endedBuild(yield* addProject(world), BUILT, { now: NOON + 9 });
      const [first = "", second = "", third = ""] = made;
      expect(ids(yield* ready({ ...of, limit: 10 }))).toEqual([third, second, first]);
      expect(ids(yield* ready({ ...of, limit: 2 }))).toEqual([third, second]);
      yield* forgetImages([third, first, randomUUID()]);
      yield* forgetImages([]);
      yield* forgetImages([third]);
      expect(yield* ready({ ...of, limit: 1 })).toEqual([yield* get(second)]);
      expect(yield* ready({ ...of, limit: 10 })).toHaveLength(1);
      expect(yield* get(third)).toMatchObject({ status: "ready", image });
    }),
  );

  check(
    "is listed with those of all nodes, newest first, in pages",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const { list } = yield* EnvironmentBuilds;
      const whole = list(projectId, { limit: 10, cursor: null });
      expect(yield* whole).toEqual({ items: [], nextCursor: null });
      const early = [yield* newBuild(projectId), yield* newBuild(projectId, { nodeId: "node-2" })];
      const late = yield* newBuild(projectId, { nodeId: "node-3", now: NOON + 1 });
      yield* newBuild(yield* addProject(world), { now: NOON + 2 });
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page: Page<{ readonly id: string }> = yield* list(projectId, { limit: 1, cursor });
        expect(page.items).toHaveLength(1);
        seen.push(...ids(page.items));
        cursor = page.nextCursor;
      } while (cursor !== null);
      expect(seen).toEqual([late, ...early.toSorted().toReversed()]);
      // Each time it is run, the request reads anew.
      expect(ids((yield* whole).items)).toEqual(seen);
      expect((yield* Effect.flip(list(projectId, { limit: 1, cursor: "x" })))._tag).toBe("BadCursor");
    }),
  );
};

export const checkEnvironmentBuilds = (check: Check): void => {
  describe("a build of an environment", () => {
    checkOpening(check);
    checkLife(check);
    checkReads(check);
  });
  checkKeptBuilds(check);
  checkBuildLogs(check);
};
