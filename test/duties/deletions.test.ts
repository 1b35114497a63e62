/** The files of projects that are gone, on several nodes over one store. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Logger from "effect/Logger";
import { describe, expect, it } from "vitest";
import { makeSweep, removeDue } from "../../src/duties/deletions.ts";
import { Pause, PauseSwitch } from "../../src/ground/pause.ts";
import { ProjectPlaces, type ProjectPlace } from "../../src/services/projects/project-places.ts";
import { ProjectDeletions } from "../../src/store/ports/projects/project-deletions.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { addProject, makeWorld, NOON } from "../support/world/world.ts";

/** A place that remembers what it was asked to remove, and cannot do it as often as it is told. */
class Shelf {
  readonly removed: string[] = [];
  failures: number;
  constructor(failures = 0) {
    this.failures = failures;
  }

  get place(): ProjectPlace {
    return {
      what: "a shelf",
      remove: (projectId) =>
        Effect.suspend(() => {
          if (this.failures > 0) {
            this.failures -= 1;
            return Effect.fail({ message: "the disk is busy" });
          }
          this.removed.push(projectId);
          return Effect.void;
        }),
    };
  }
}

const sweepOf = (...shelves: readonly Shelf[]) =>
  Effect.provideService(
    makeSweep,
    ProjectPlaces,
    shelves.map(({ place }) => place),
  );

/** A world with a project whose time has come, and another one. */
const scene = Effect.gen(function* () {
  const world = yield* makeWorld(1);
  const other = yield* addProject(world);
  yield* (yield* ProjectDeletions).begin(world.projectId, { now: NOON, deletesAt: NOON + 1 });
  return { pid: world.projectId, other };
});

const run = <A, E>(effect: Effect.Effect<A, E, Layer.Success<typeof memoryStore>>): Promise<A> =>
  Effect.runPromise(effect.pipe(Effect.provide(memoryStore), Effect.provide(Logger.layer([]))));

describe("the files of a project that is gone", () => {
  it("are removed once by each node, also by one that was away when its rows went", () =>
    run(
      Effect.gen(function* () {
        const { pid } = yield* scene;
        const [here, there] = [new Shelf(), new Shelf()];
        const sweep = yield* sweepOf(here);
        expect([yield* sweep, here.removed]).toEqual([[], []]);
        yield* removeDue;
        expect([yield* sweep, yield* sweep, here.removed]).toEqual([[pid], [pid], [pid]]);
        yield* yield* sweepOf(there);
        expect(there.removed).toEqual([pid]);
      }),
    ));

  it("that cannot be removed are tried again, and hold up nothing else", () =>
    run(
      Effect.gen(function* () {
        const { pid } = yield* scene;
        yield* removeDue;
        const [busy, free] = [new Shelf(1), new Shelf()];
        const sweep = yield* sweepOf(busy, free);
        yield* sweep;
        expect([busy.removed, free.removed]).toEqual([[], [pid]]);
        yield* sweep;
        expect(busy.removed).toEqual([pid]);
      }),
    ));

  it("stay with its rows while a restored copy is paused", () =>
    run(
      Effect.gen(function* () {
        const { pid, other } = yield* scene;
        const pause = new PauseSwitch();
        pause.since = NOON;
        yield* Effect.provideService(removeDue, Pause, pause);
        const { get } = yield* Projects;
        expect((yield* get(pid))?.status).toBe("deleted");
        pause.since = null;
        yield* Effect.provideService(removeDue, Pause, pause);
        expect([yield* get(pid), (yield* get(other))?.status]).toEqual([null, "active"]);
        expect(yield* get(randomUUID())).toBe(null);
      }),
    ));
});
