import { describe, expect, it } from "vitest";
import { dayText, type Entry, isNew, withCounts } from "../../../dashboard/activity/words.ts";
import { NO_FACTS } from "../fakes/fake-activity.ts";

const AT = "2026-11-20T12:00:00.000Z";
const entry = (rest: Partial<Entry>): Entry => ({
  id: "1",
  kind: "session.turn_ended",
  at: AT,
  project: { id: "p", name: "shop" },
  ...NO_FACTS,
  ...rest,
});
const [ada, ben] = [
  { id: "a", name: "Ada" },
  { id: "b", name: "Ben" },
];

const ended = (id: string, name: string) => entry({ id, session: { id: name, name }, state: "completed" });
const local = (day: number, hour: number) => new Date(2026, 10, day, hour);

describe("an entry", () => {
  it("is new since its reader last looked, unless she did it or never looked", () => {
    const reader = { id: "a", seenAt: "2026-11-20T11:59:59.999Z" };
    expect([
      isNew(entry({}), reader),
      isNew(entry({ person: ben }), reader),
      isNew(entry({ person: ada }), reader),
      isNew(entry({}), { ...reader, seenAt: AT }),
      isNew(entry({}), { ...reader, seenAt: null }),
    ]).toEqual([true, true, false, false, false]);
  });

  it("stands for those before it in which the same happened", () => {
    const rows = withCounts([ended("4", "x"), ended("3", "x"), ended("2", "y"), ended("1", "x")]);
    expect(rows.map((row) => [row.entry.id, row.count])).toEqual([
      ["4", 2],
      ["2", 1],
      ["1", 1],
    ]);
  });
});

describe("a day", () => {
  it("is today and yesterday by the reader's midnight", () => {
    const now = local(20, 1).getTime();
    expect(
      [local(20, 0), local(19, 23), local(18, 23)].map((day) => dayText(day.toISOString(), now)).slice(0, 2),
    ).toEqual(["Today", "Yesterday"]);
    expect(dayText(local(18, 23).toISOString(), now)).toContain("18");
  });
});
