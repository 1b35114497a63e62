/** When a provider takes requests again, in words. */
import { expect, it } from "vitest";
import { modelErrorWords, retryTime } from "../../../src/domain/session/model-errors.ts";

const NOW = Date.UTC(2026, 10, 30, 14, 3, 30);

it.each([
  ["20", "in 20 s"],
  [" 1.2 ", "in 2 s"],
  ["120", "in 120 s"],
  ["121", "after 14:06 UTC"],
  ["Mon, 30 Nov 2026 14:03:50 GMT", "in 20 s"],
  ["Mon, 30 Nov 2026 18:00:00 GMT", "after 18:00 UTC"],
  ["Tue, 01 Dec 2026 14:03:00 GMT", "after 2026-12-01 14:03 UTC"],
  ["86400", "after 2026-12-01 14:04 UTC"],
])("tells the time of %j", (header, words) => {
  expect(retryTime(header, NOW)).toBe(words);
});

it.each(["", "0", "-5", "soon", "2026-12-01", "Mon, 30 Nov 2026 14:00:00 GMT", "9999999", "1e3", "GMT"])(
  "tells no time of %j",
  (header) => {
    expect(retryTime(header, NOW)).toBeNull();
  },
);

it("has words for the code of older conversations, and none for causes that are not the provider's", () => {
  expect(modelErrorWords("model_quota")?.isAboutKey).toBe(true);
  expect([modelErrorWords("turn_failed"), modelErrorWords("toString")]).toEqual([null, null]);
});
