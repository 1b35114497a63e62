import { describe, expect, it } from "vitest";
import { BoundedMap } from "../../src/ground/bounded-map.ts";

const filled = (limit: number, keys: string): BoundedMap<string, number> => {
  const map = new BoundedMap<string, number>(limit);
  for (const key of keys) map.set(key, 1);
  return map;
};

describe("a bounded map", () => {
  it("drops the entries that were set first", () => {
    expect([...filled(2, "abc").keys()]).toEqual(["b", "c"]);
  });

  it("counts an entry once that is set again, and makes it the newest", () => {
    expect([...filled(2, "abac").keys()]).toEqual(["a", "c"]);
  });

  it("makes an entry the newest that is used, but not one that is only read", () => {
    const map = filled(2, "ab");
    map.get("a");
    expect([...map.set("c", 1).keys()]).toEqual(["b", "c"]);
    expect(map.use("b")).toBe(1);
    expect([...map.set("d", 1).keys()]).toEqual(["b", "d"]);
    expect(map.use("x")).toBeUndefined();
  });

  it("limits the weight of its values, also after deletions", () => {
    const map = new BoundedMap<string, string>(5, ({ length }) => length);
    map.set("a", "12").set("b", "345").set("a", "1");
    expect(map.weight).toBe(4);
    map.delete("b");
    map.delete("b");
    expect(map.weight).toBe(1);
    map.set("c", "2345");
    expect([...map.keys()]).toEqual(["a", "c"]);
    map.set("d", "6");
    expect([...map.keys()]).toEqual(["c", "d"]);
    map.clear();
    expect([map.weight, map.size]).toEqual([0, 0]);
  });

  it("tells of the values that make room, and of no others", () => {
    const left: string[] = [];
    const map = new BoundedMap<string, string>(
      2,
      () => 1,
      (value) => left.push(value),
    );
    map.set("a", "1").set("b", "2").set("a", "3").set("c", "4");
    map.delete("a");
    expect(left).toEqual(["2"]);
  });

  it("does not keep a value that weighs more than the limit", () => {
    const map = new BoundedMap<string, string>(3, ({ length }) => length);
    expect(map.set("a", "1").set("b", "1234").size).toBe(0);
  });
});
