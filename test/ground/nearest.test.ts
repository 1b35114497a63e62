import { expect, test } from "vitest";
import { nearest } from "../../src/ground/nearest.ts";

const NAMES = ["idle_timeout_ms", "idle_limit", "port", "token_of_all"];

test.each([
  ["idle_timeout", "idle_timeout_ms"],
  ["idle_timout_ms", "idle_timeout_ms"],
  ["idel_limit", "idle_limit"],
  ["idle_limits", "idle_limit"],
  ["pore", "port"],
  ["poor", null],
  ["token", null],
  ["idle", "idle_limit"],
  ["idle_timeout_m", "idle_timeout_ms"],
  ["", null],
])("the name that %j may mean is %j", (name, meant) => {
  expect(nearest(name, NAMES)).toBe(meant);
});

test.each([
  ["session", "sessions"],
  ["opne", "open"],
  ["opened-it", null],
])("with a third of its letters wrong, %j may mean %j", (word, meant) => {
  expect(nearest(word, ["sessions", "secrets", "open"], Math.ceil(word.length / 3))).toBe(meant);
});
