import { expect, test } from "vitest";
import type { ListedItem } from "../../../src/domain/save/listing.ts";
import { PartQueue } from "../../../src/domain/save/part-queue.ts";
import type { Part } from "../../../src/domain/save/parts.ts";

const item = (path: string, size: number): ListedItem => ({
  kind: "file",
  path,
  mode: "100644",
  size,
  object: Buffer.from(path).toString("hex").padEnd(40, "0"),
});
const part = (...items: readonly ListedItem[]): Part => ({
  type: "items",
  items,
  bytes: items.reduce((sum, { size }) => sum + size, 0),
});
const paths = (one: Part | undefined): readonly string[] | undefined =>
  one?.type === "items" ? one.items.map(({ path }) => path) : undefined;

test("a part that does not fit is divided, and only what does not fit alone is left out", () => {
  const left: (readonly string[] | undefined)[] = [];
  const queue = new PartQueue([part(item("a", 3), item("b", 9)), part(item("c", 4))], {
    room: 8,
    hasNoRoom: (one) => void left.push(paths(one)),
  });
  expect([queue.next(), queue.next(), queue.next()].map(paths)).toEqual([["a"], ["c"], undefined]);
  expect(left).toEqual([["b"]]);
});

test("a part that failed is tried in halves with the room that it had, until one path is left", () => {
  const queue = new PartQueue([part(item("a", 4), item("b", 4))], { room: 8, hasNoRoom: () => undefined });
  const whole = queue.next();
  expect(queue.retry(whole === undefined ? [] : [whole])).toBe(false);
  const half = queue.next();
  expect(paths(half)).toEqual(["a"]);
  expect(queue.retry(half === undefined ? [] : [half])).toBe(true);
  expect([queue.another(), queue.another()].map(paths)).toEqual([["b"], undefined]);
});

test("several parts that failed together are tried one by one from then on", () => {
  const queue = new PartQueue([part(item("a", 1)), part(item("b", 1))], {
    room: 2,
    hasNoRoom: () => undefined,
  });
  const both = [queue.next(), queue.another()].flatMap((one) => one ?? []);
  expect(queue.retry(both)).toBe(false);
  expect([queue.next(), queue.another(), queue.next()].map(paths)).toEqual([["a"], undefined, ["b"]]);
});
