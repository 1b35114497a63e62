import { expect, test } from "vitest";
import {
  FIRE_MOVES,
  FIRE_STATUSES,
  isRetried,
  requireMove,
  requireWaits,
  type FormerFireStatus,
} from "../../../src/domain/trigger/fire.ts";

test("F4: fired, skipped and duplicate are final, and no other status is", () => {
  expect(FIRE_STATUSES.filter((status) => Object.keys(FIRE_MOVES[status]).length === 0)).toEqual([
    "fired",
    "skipped",
    "duplicate",
  ]);
});

test("a new row can reach every status", () => {
  const reached = new Set<FormerFireStatus>(["new"]);
  for (const from of reached)
    for (const to of FIRE_STATUSES) if (FIRE_MOVES[from][to] !== undefined) reached.add(to);
  expect(reached.size).toBe(1 + FIRE_STATUSES.length);
});

test("F3: a repeated delivery tries a failed, expired or cancelled fire again, and no other", () => {
  expect(FIRE_STATUSES.filter(isRetried)).toEqual(["failed", "expired", "cancelled"]);
});

test("a move that is not in the table is refused", () => {
  expect(() => requireMove("failed", "skipped")).not.toThrow();
  expect(() => requireMove("fired", "queued")).toThrow("a fire cannot go from fired to queued");
  expect(() => requireMove("new", "expired")).toThrow("a fire cannot go from new to expired");
});

test("F2: only a queued fire can end its wait", () => {
  expect(() => requireWaits("queued", "expired")).not.toThrow();
  expect(() => requireWaits("failed", "skipped")).toThrow("a fire cannot go from failed to skipped");
});
