import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Schedules, triggerActorId, type Scheduled, type Wanted } from "../../src/actors/schedules.ts";
import type { CronTriggerDefinition } from "../../src/domain/trigger.ts";

const SECOND = 1000;

const cronTrigger = (slug: string, cron: string, prompt = "tick"): CronTriggerDefinition => ({
  type: "cron",
  slug,
  name: slug,
  prompt,
  agent: "default",
  enabled: true,
  cron,
  timezone: "UTC",
});

/** Every so many seconds, a divisor of 60. */
const every = (seconds: number): string => `*/${seconds} * * * * *`;

/** A project's triggers as they are wanted: the expression of each slug, accounted for until an instant. */
const wanted = (project: string, expressions: Readonly<Record<string, string>>, accountedUntil = 0) =>
  new Map<string, Wanted>(
    Object.entries(expressions).map(([slug, cron]) => [
      triggerActorId(project, slug),
      { definition: cronTrigger(slug, cron), accountedUntil },
    ]),
  );

const ids = (scheduled: readonly Scheduled[]): readonly string[] => scheduled.map(({ id }) => id);
const dues = (scheduled: readonly Scheduled[]) => scheduled.map(({ id, due }) => [id, due]);

const known = (schedules: Schedules, id: string): Scheduled => {
  const scheduled = schedules.get(id);
  if (scheduled === null) throw new Error(`${id} is not scheduled`);
  return scheduled;
};

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
/** A task of its own: what the former one looked at is held until its end. */
const nextTask = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe("what is scheduled", () => {
  test("begins with the first due instant after what is accounted for", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { a: every(10) }, 10 * SECOND), 15 * SECOND);
    expect(known(schedules, "p/a")).toMatchObject({ due: 20 * SECOND, since: 15 * SECOND, told: false });
  });

  test("goes on as it was where its schedule stays, with what is new of its definition", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { a: every(10) }), 0);
    const before = known(schedules, "p/a");
    const changed = cronTrigger("a", every(10), "another prompt");
    // Its cursor says the same or more by now; what this process knows is newer.
    schedules.replace("p", new Map([["p/a", { definition: changed, accountedUntil: 55 * SECOND }]]), 5);
    expect(schedules.get("p/a")).toBe(before);
    expect(before).toMatchObject({ definition: changed, due: 10 * SECOND, since: 0 });
    expect(dues(schedules.takeUntil(60 * SECOND))).toEqual([["p/a", 10 * SECOND]]);
  });

  test("starts anew with another expression or another zone, and is not due when it was before", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { a: every(10), b: "0 0 12 * * *" }), 0);
    schedules.replace("p", wanted("p", { a: every(30), b: "0 0 12 * * *" }, 5), 5);
    const moved = { ...cronTrigger("b", "0 0 12 * * *"), timezone: "Asia/Tokyo" };
    const both = new Map([
      ...wanted("p", { a: every(30) }, 5),
      ["p/b", { definition: moved, accountedUntil: 5 }],
    ]);
    schedules.replace("p", both, 5);
    expect(known(schedules, "p/a")).toMatchObject({ due: 30 * SECOND, since: 5, told: false });
    expect(dues(schedules.takeUntil(86_400 * SECOND))).toEqual([
      ["p/a", 30 * SECOND],
      ["p/b", 3 * 3600 * SECOND],
    ]);
  });

  test("ends with its project's wish, and another project keeps its own", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { a: every(10), b: every(10) }), 0);
    schedules.replace("q", wanted("q", { a: every(10) }), 0);
    schedules.replace("p", wanted("p", { b: every(10) }), 0);
    expect([schedules.get("p/a"), schedules.size]).toEqual([null, 2]);
    schedules.replace("p", new Map(), 0);
    expect(ids(schedules.takeUntil(60 * SECOND))).toEqual(["q/a"]);
  });

  test("names those whose actors know of an instant that is none any more, and only those", () => {
    const schedules = new Schedules();
    const early = { gone: every(10), changed: every(10), kept: every(10) };
    schedules.replace("p", wanted("p", { ...early, untold: every(60) }), 0);
    schedules.takeUntil(10 * SECOND);
    const revoked = schedules.replace("p", wanted("p", { changed: every(20), kept: every(10) }), 0);
    expect(revoked).toEqual(["p/gone", "p/changed"]);
    expect(ids(schedules.overdue(60 * SECOND))).toEqual(["p/kept"]);
  });

  test("has no instant where its expression has no more of them", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { a: every(10) }, Date.UTC(9999, 11, 31)), 0);
    expect(known(schedules, "p/a").due).toBeNull();
    expect(schedules.takeUntil(Infinity)).toEqual([]);
  });

  test("lets go of former definitions while the new ones are far from due", async () => {
    const schedules = new Schedules();
    const former: WeakRef<CronTriggerDefinition>[] = [];
    for (let edit = 0; edit < 10_000; edit += 1) {
      const next = wanted("p", { a: `0 ${edit % 60} 0 1 1 *` });
      for (const { definition } of next.values()) former.push(new WeakRef(definition));
      schedules.replace("p", next, 0);
    }
    await nextTask();
    collect();
    const held = former.filter((definition) => definition.deref() !== undefined);
    expect(held.length).toBeLessThan(2000);
    expect(schedules.size).toBe(1);
  });

  test("is handed out once, and what was told is not handed out again, after many changes beside it", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { told: every(10), waits: every(30) }), 0);
    schedules.takeUntil(10 * SECOND);
    for (let edit = 0; edit < 5000; edit += 1)
      schedules.replace("q", wanted("q", { a: `0 ${edit % 60} 0 1 1 *` }), 0);
    expect(ids(schedules.takeUntil(60 * SECOND))).toEqual(["p/waits"]);
    expect(ids(schedules.overdue(60 * SECOND))).toEqual(["p/told", "p/waits"]);
  });
});

describe("what falls due", () => {
  test("is handed out earliest first, up to the instant itself, and once", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { late: every(30), soon: every(5), next: every(10) }), 0);
    expect(dues(schedules.takeUntil(10 * SECOND))).toEqual([
      ["p/soon", 5 * SECOND],
      ["p/next", 10 * SECOND],
    ]);
    expect(schedules.takeUntil(29_999)).toEqual([]);
    expect(ids(schedules.takeUntil(30 * SECOND))).toEqual(["p/late"]);
  });

  test("goes on with its next instant where that comes before the next poll", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { a: every(10) }), 0);
    schedules.takeUntil(60 * SECOND);
    const scheduled = known(schedules, "p/a");
    expect(schedules.accounted(scheduled, { upTo: 10 * SECOND, until: 20 * SECOND })).toBe(20 * SECOND);
    expect(schedules.takeUntil(60 * SECOND)).toEqual([]);
  });

  test("waits for its next instant's poll where that comes later", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { a: every(10) }), 0);
    schedules.takeUntil(10 * SECOND);
    const scheduled = known(schedules, "p/a");
    expect(schedules.accounted(scheduled, { upTo: 10 * SECOND, until: 19_999 })).toBeNull();
    expect(schedules.overdue(Infinity)).toEqual([]);
    expect(dues(schedules.takeUntil(20 * SECOND))).toEqual([["p/a", 20 * SECOND]]);
  });

  test("is overdue once its instant is past, until it is accounted for", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { a: every(10), b: every(30) }), 0);
    schedules.takeUntil(30 * SECOND);
    expect(schedules.overdue(10 * SECOND)).toEqual([]);
    expect(ids(schedules.overdue(10 * SECOND + 1))).toEqual(["p/a"]);
    schedules.accounted(known(schedules, "p/a"), { upTo: 10 * SECOND, until: 30 * SECOND });
    expect(schedules.overdue(20 * SECOND)).toEqual([]);
    expect(ids(schedules.overdue(20 * SECOND + 1))).toEqual(["p/a"]);
  });

  test("changes nothing when an instant of a former schedule is accounted for [C17]", () => {
    const schedules = new Schedules();
    schedules.replace("p", wanted("p", { a: every(10) }), 0);
    const [former] = schedules.takeUntil(10 * SECOND);
    schedules.replace("p", wanted("p", { a: every(30) }), 0);
    if (former === undefined) throw new Error("nothing was due");
    expect(schedules.accounted(former, { upTo: 40 * SECOND, until: 60 * SECOND })).toBeNull();
    expect(dues(schedules.takeUntil(60 * SECOND))).toEqual([["p/a", 30 * SECOND]]);
  });
});

/** What each method promises, over one list and with instants counted by hand. */
class Model {
  readonly known = new Map<string, { seconds: number; due: number; told: boolean }>();

  static next(seconds: number, after: number): number {
    const step = seconds * SECOND;
    return Math.floor(after / step) * step + step;
  }

  replace(project: string, speeds: ReadonlyMap<string, number>, accountedUntil: number): readonly string[] {
    const revoked: string[] = [];
    for (const [id, { seconds, told }] of this.known) {
      if (!id.startsWith(`${project}/`) || speeds.get(id) === seconds) continue;
      if (told) revoked.push(id);
      this.known.delete(id);
    }
    for (const [id, seconds] of speeds)
      if (!this.known.has(id))
        this.known.set(id, { seconds, due: Model.next(seconds, accountedUntil), told: false });
    return revoked;
  }

  takeUntil(until: number): readonly string[] {
    const taken = [...this.known].filter(([, { due, told }]) => !told && due <= until);
    for (const [, one] of taken) one.told = true;
    return taken.map(([id]) => id);
  }

  overdue(before: number): readonly string[] {
    return [...this.known].filter(([, { due, told }]) => told && due < before).map(([id]) => id);
  }

  accounted(id: string, upTo: number, until: number): number | null {
    const one = this.known.get(id);
    if (one === undefined) return null;
    one.due = Model.next(one.seconds, upTo);
    one.told = one.due <= until;
    return one.told ? one.due : null;
  }
}

type Step = (schedules: Schedules, model: Model) => void;

const sorted = (texts: readonly string[]): readonly string[] => texts.toSorted();
const instant = fc.integer({ min: 0, max: 120 }).map((half) => half * 500);
const slug = fc.constantFrom("a", "b", "c", "d");
const project = fc.constantFrom("p", "q");
const speeds = fc.dictionary(slug, fc.constantFrom(5, 10, 20), { noNullPrototype: true });

const replacing = fc.record({ project, speeds, at: instant }).map((wish): Step => {
  const expressions = Object.entries(wish.speeds).map(([name, seconds]) => [name, every(seconds)] as const);
  const bySlug = Object.entries(wish.speeds).map(
    ([name, seconds]) => [triggerActorId(wish.project, name), seconds] as const,
  );
  return (schedules, model) => {
    const next = wanted(wish.project, Object.fromEntries(expressions), wish.at);
    expect(sorted(schedules.replace(wish.project, next, wish.at))).toEqual(
      sorted(model.replace(wish.project, new Map(bySlug), wish.at)),
    );
  };
});
const taking = instant.map((until): Step => (schedules, model) => {
  const taken = schedules.takeUntil(until);
  const instants = taken.map(({ due }) => due ?? Number.NaN);
  expect(instants).toEqual(instants.toSorted((a, b) => a - b));
  expect(sorted(ids(taken))).toEqual(sorted(model.takeUntil(until)));
});
const accounting = fc
  .record({ project, slug, upTo: instant, until: instant })
  .map(({ project: of, slug: name, upTo, until }): Step => (schedules, model) => {
    const id = triggerActorId(of, name);
    const scheduled = schedules.get(id);
    expect(scheduled !== null).toBe(model.known.has(id));
    if (scheduled !== null)
      expect(schedules.accounted(scheduled, { upTo, until })).toBe(model.accounted(id, upTo, until));
  });

test("the schedules do what a plain list would", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(replacing, taking, accounting), { maxLength: 40 }),
      instant,
      (steps, before) => {
        const schedules = new Schedules();
        const model = new Model();
        for (const step of steps) step(schedules, model);
        expect(sorted(ids(schedules.overdue(before)))).toEqual(sorted(model.overdue(before)));
        const held = sorted(ids([...model.known.keys()].map((id) => known(schedules, id))));
        expect([held, schedules.size]).toEqual([sorted([...model.known.keys()]), model.known.size]);
        expect(sorted(ids(schedules.takeUntil(Infinity)))).toEqual(sorted(model.takeUntil(Infinity)));
      },
    ),
    { numRuns: 1000 },
  );
});

// A tenth of what `npm run bench:scheduler` takes up, so that the test takes a second: nothing in it grows but with the
// count.
test("100,000 triggers that are due at one instant are all handed out, once, in half a kilobyte each [C20]", async () => {
  const PROJECTS = 100;
  const EACH = 1000;
  const schedules = new Schedules();
  collect();
  const before = process.memoryUsage().heapUsed;
  const definition = cronTrigger("t", "0 0 9 * * *");
  for (let number = 0; number < PROJECTS; number += 1) {
    const next = new Map<string, Wanted>();
    for (let index = 0; index < EACH; index += 1)
      next.set(triggerActorId(`p${number}`, `trigger-${index}`), { definition, accountedUntil: 0 });
    schedules.replace(`p${number}`, next, 0);
  }
  const nine = 9 * 3600 * SECOND;
  expect(schedules.takeUntil(nine - 1)).toEqual([]);
  expect(new Set(ids(schedules.takeUntil(nine))).size).toBe(PROJECTS * EACH);
  expect(schedules.takeUntil(nine)).toEqual([]);
  expect(schedules.overdue(nine + 1).length).toBe(PROJECTS * EACH);
  for (const scheduled of schedules.overdue(nine + 1))
    expect(schedules.accounted(scheduled, { upTo: nine, until: nine + 60 * SECOND })).toBeNull();
  expect(schedules.overdue(Infinity)).toEqual([]);
  await nextTask();
  collect();
  const bytes = (process.memoryUsage().heapUsed - before) / (PROJECTS * EACH);
  expect(bytes).toBeLessThan(512);
  expect(schedules.takeUntil(nine + 24 * 3600 * SECOND).length).toBe(PROJECTS * EACH);
});
