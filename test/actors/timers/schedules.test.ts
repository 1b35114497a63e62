import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type FirstLook, Schedules, triggerActorId, type Scheduled } from "../../../src/actors/schedules.ts";
import type { NextInstant } from "../../../src/machines/trigger.ts";

const SECOND = 1000;

/** Entries of a project as they are wanted: schedule and second of each slug. */
const wanted = (
  project: string,
  entries: Readonly<Record<string, readonly [schedule: string, second: number]>>,
  from = 0,
) =>
  new Map<string, FirstLook>(
    Object.entries(entries).map(([slug, [schedule, second]]) => [
      triggerActorId(project, slug),
      { schedule, due: second * SECOND, from: from * SECOND },
    ]),
  );

/** All that falls due up to a second, in their order. */
const taken = (schedules: Schedules, second: number): readonly string[] => {
  const ids: string[] = [];
  for (let one = schedules.take(second * SECOND); one !== null; one = schedules.take(second * SECOND))
    ids.push(one.id);
  return ids;
};

const ids = (scheduled: readonly Scheduled[]): readonly string[] => scheduled.map(({ id }) => id);

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
/** A task of its own: what the former one looked at is held until its end. */
const nextTask = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe("an entry", () => {
  test("say what is due soon, the earliest first and up to a number, and keep it", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { c: ["s", 3], a: ["s", 1], b: ["s", 2], d: ["s", 9], e: ["s", 2] }));
    schedules.arm("p/e", { due: 20 * SECOND, schedule: "s" });
    expect(ids(schedules.soon(3 * SECOND, 10))).toEqual(["p/a", "p/b", "p/c"]);
    expect(ids(schedules.soon(3 * SECOND, 2))).toEqual(["p/a", "p/b"]);
    expect(taken(schedules, 30)).toEqual(["p/a", "p/b", "p/c", "p/d", "p/e"]);
    expect(schedules.soon(30 * SECOND, 10)).toEqual([]);
  });

  test("rings once when its instant comes, earliest first", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { late: ["s", 30], soon: ["s", 5], next: ["s", 10] }));
    expect(schedules.first).toBe(5 * SECOND);
    expect(taken(schedules, 10)).toEqual(["p/soon", "p/next"]);
    expect(taken(schedules, 29.999)).toEqual([]);
    expect(taken(schedules, 30)).toEqual(["p/late"]);
    expect(schedules.first).toBe(Infinity);
  });

  test("waits again once it is armed again", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { a: ["s", 10] }));
    expect(taken(schedules, 60)).toEqual(["p/a"]);
    schedules.arm("p/a", { schedule: "s", due: 20 * SECOND });
    expect(schedules.get("p/a")).toMatchObject({ due: 20 * SECOND, rangAt: null });
    expect(taken(schedules, 60)).toEqual(["p/a"]);
  });

  test("continues unchanged if its schedule stays: its actor's value is newer than the cursor that was read", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { a: ["s", 10] }));
    taken(schedules, 10);
    schedules.arm("p/a", { schedule: "s", due: 20 * SECOND });
    const before = schedules.get("p/a");
    schedules.keep("p", wanted("p", { a: ["s", 10] }));
    expect(schedules.get("p/a")).toBe(before);
    expect(before?.due).toBe(20 * SECOND);
  });

  test("is set again if its cursor went back: the former one came from a clock that is ahead", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { a: ["s", 240] }, 224));
    // Another schedule came and went before this node saw it.
    schedules.keep("p", wanted("p", { a: ["s", 20] }, 5));
    expect(taken(schedules, 19)).toEqual([]);
    expect(taken(schedules, 20)).toEqual(["p/a"]);
  });

  test("that rang rings again if its project is updated: its actor may have used another definition", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { a: ["s", 10] }));
    taken(schedules, 10);
    schedules.keep("p", wanted("p", { a: ["s", 10] }));
    expect(taken(schedules, 10)).toEqual(["p/a"]);
  });

  test("starts again with another schedule, and the former schedule has no effect any more [C17]", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { a: ["former", 10] }));
    taken(schedules, 10);
    schedules.keep("p", wanted("p", { a: ["new", 30] }));
    schedules.arm("p/a", { schedule: "former", due: 20 * SECOND });
    expect(schedules.get("p/a")).toMatchObject({ due: 30 * SECOND, rangAt: null });
    expect(taken(schedules, 29)).toEqual([]);
    expect(taken(schedules, 30)).toEqual(["p/a"]);
  });

  test("is removed with its project, and another project keeps its own", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { a: ["s", 10], b: ["s", 10] }));
    schedules.keep("q", wanted("q", { a: ["s", 10] }));
    schedules.keep("p", wanted("p", { b: ["s", 10] }));
    expect([schedules.get("p/a"), schedules.size]).toEqual([null, 2]);
    schedules.keep("p", new Map());
    expect(taken(schedules, 60)).toEqual(["q/a"]);
  });

  test("that was removed is not brought back by its actor", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { a: ["s", 10] }));
    schedules.keep("p", new Map());
    schedules.arm("p/a", { schedule: "s", due: 20 * SECOND });
    expect([schedules.get("p/a"), schedules.size, taken(schedules, 60)]).toEqual([null, 0, []]);
  });

  test("is dropped when its actor moves to another node, whether it waits or rang", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { rang: ["s", 10], waits: ["s", 30], here: ["s", 30] }));
    taken(schedules, 10);
    schedules.keep("q", wanted("q", { a: ["s", 40] }));
    schedules.drop("p", (id) => id !== "p/here");
    expect([schedules.size, schedules.takeAgain(Infinity, 0)]).toEqual([2, []]);
    expect(taken(schedules, 60)).toEqual(["p/here", "q/a"]);
  });

  test("that rang and was not armed rings again after a while", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { a: ["s", 10], b: ["s", 20] }));
    taken(schedules, 10);
    taken(schedules, 20);
    expect(ids(schedules.takeAgain(10 * SECOND, 25 * SECOND))).toEqual(["p/a"]);
    expect(schedules.takeAgain(10 * SECOND, 25 * SECOND)).toEqual([]);
    schedules.arm("p/b", { schedule: "s", due: 60 * SECOND });
    expect(ids(schedules.takeAgain(25 * SECOND, 26 * SECOND))).toEqual(["p/a"]);
  });

  test("without a next instant never rings", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { a: ["s", Infinity] }));
    expect(taken(schedules, 1e12)).toEqual([]);
  });

  test("releases former schedules while the new ones are far from due", () => {
    const schedules = new Schedules();
    collect();
    const before = process.memoryUsage().heapUsed;
    const text = "x".repeat(1_000);
    for (let edit = 0; edit < 20_000; edit += 1)
      schedules.keep("p", wanted("p", { a: [`${edit} ${text}`.replaceAll("x", "y"), 1e9 + edit] }));
    collect();
    // All of them would be 20 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(8_000_000);
    expect(schedules.size).toBe(1);
  });

  test("rings once after many changes to other entries", () => {
    const schedules = new Schedules();
    schedules.keep("p", wanted("p", { rang: ["s", 10], waits: ["s", 30] }));
    taken(schedules, 10);
    for (let edit = 0; edit < 5000; edit += 1) schedules.keep("q", wanted("q", { a: [`${edit}`, 1e9] }));
    expect(taken(schedules, 60)).toEqual(["p/waits"]);
    expect(ids(schedules.takeAgain(60 * SECOND, 60 * SECOND))).toEqual(["p/rang", "p/waits"]);
  });
});

/** What each method promises, over one list. */
class Model {
  readonly known = new Map<string, { schedule: string; due: number; rangAt: number | null }>();

  keep(project: string, next: ReadonlyMap<string, NextInstant>): void {
    for (const [id, { schedule }] of this.known)
      if (id.startsWith(`${project}/`) && next.get(id)?.schedule !== schedule) this.known.delete(id);
    for (const [id, { schedule, due }] of next) {
      const one = this.known.get(id);
      if (one === undefined || one.rangAt !== null) this.known.set(id, { schedule, due, rangAt: null });
    }
  }

  arm(id: string, { schedule, due }: NextInstant): void {
    if (this.known.get(id)?.schedule === schedule) this.known.set(id, { schedule, due, rangAt: null });
  }

  take(now: number): readonly string[] {
    const due = [...this.known].filter(([, one]) => one.rangAt === null && one.due <= now);
    for (const [, one] of due) one.rangAt = now;
    return due.map(([id]) => id);
  }

  takeAgain(until: number, now: number): readonly string[] {
    const again = [...this.known].filter(([, { rangAt }]) => rangAt !== null && rangAt <= until);
    for (const [, one] of again) one.rangAt = now;
    return again.map(([id]) => id);
  }

  drop(project: string, isGone: (id: string) => boolean): void {
    for (const id of this.known.keys()) if (id.startsWith(`${project}/`) && isGone(id)) this.known.delete(id);
  }
}

type Step = (schedules: Schedules, model: Model) => void;

const sorted = (texts: readonly string[]): readonly string[] => texts.toSorted();
const second = fc.integer({ min: 0, max: 60 });
const slug = fc.constantFrom("a", "b", "c", "d");
const project = fc.constantFrom("p", "q");
const schedule = fc.constantFrom("s", "t");
const entries = fc.dictionary(slug, fc.tuple(schedule, second), { noNullPrototype: true });

const keeping = fc.record({ project, entries }).map((wish): Step => {
  const next = wanted(wish.project, wish.entries);
  return (schedules, model) => {
    schedules.keep(wish.project, next);
    model.keep(wish.project, next);
  };
});
const taking = second.map((at): Step => (schedules, model) => {
  expect(sorted(taken(schedules, at))).toEqual(sorted(model.take(at * SECOND)));
});
const takingAgain = fc.tuple(second, second).map(([until, now]): Step => (schedules, model) => {
  expect(sorted(ids(schedules.takeAgain(until * SECOND, now * SECOND)))).toEqual(
    sorted(model.takeAgain(until * SECOND, now * SECOND)),
  );
});
const arming = fc.record({ project, slug, schedule, second }).map((wish): Step => {
  const id = triggerActorId(wish.project, wish.slug);
  const next = { schedule: wish.schedule, due: wish.second * SECOND };
  return (schedules, model) => {
    schedules.arm(id, next);
    model.arm(id, next);
  };
});
const dropping = fc.tuple(project, slug).map(([of, gone]): Step => (schedules, model) => {
  schedules.drop(of, (id) => id.endsWith(gone));
  model.drop(of, (id) => id.endsWith(gone));
});

test("the schedules behave like a plain list", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(keeping, taking, takingAgain, arming, dropping), { maxLength: 40 }),
      (steps) => {
        const schedules = new Schedules();
        const model = new Model();
        for (const step of steps) step(schedules, model);
        const held = [...model.known].map(([id, { due, rangAt }]) => [id, due, rangAt]);
        expect(
          [...model.known.keys()].map((id) => {
            const { due = null, rangAt = null } = schedules.get(id) ?? {};
            return [id, due, rangAt];
          }),
        ).toEqual(held);
        expect(schedules.size).toBe(model.known.size);
        expect(sorted(taken(schedules, 1e9))).toEqual(sorted(model.take(1e12)));
      },
    ),
    { numRuns: 1000 },
  );
});

// A tenth of what `npm run bench:scheduler` takes up, so that the test takes a second: nothing in it grows but with the
// count.
test("100,000 triggers that are due at one instant all ring, once, in half a kilobyte each [C20]", async () => {
  const PROJECTS = 100;
  const EACH = 1000;
  const schedules = new Schedules();
  collect();
  const before = process.memoryUsage().heapUsed;
  const nine = 9 * 3600;
  for (let number = 0; number < PROJECTS; number += 1) {
    const next = new Map<string, FirstLook>();
    for (let index = 0; index < EACH; index += 1)
      next.set(triggerActorId(`p${number}`, `trigger-${index}`), {
        schedule: `0 0 9 * * * ${number} ${index}`,
        due: nine * SECOND,
        from: 0,
      });
    schedules.keep(`p${number}`, next);
  }
  expect(taken(schedules, nine - 1)).toEqual([]);
  const rung = taken(schedules, nine);
  expect(new Set(rung).size).toBe(PROJECTS * EACH);
  expect(taken(schedules, nine)).toEqual([]);
  for (const id of rung) {
    const one = schedules.get(id);
    if (one !== null) schedules.arm(id, { schedule: one.schedule, due: one.due + 86_400 * SECOND });
  }
  expect(schedules.takeAgain(Infinity, 0)).toEqual([]);
  await nextTask();
  collect();
  const bytes = (process.memoryUsage().heapUsed - before) / (PROJECTS * EACH);
  expect(bytes).toBeLessThan(512);
  expect(taken(schedules, nine + 86_400).length).toBe(PROJECTS * EACH);
});
