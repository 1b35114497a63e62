import { expect, it } from "vitest";
import { patternOfBrokenName } from "../../../src/domain/repository/broken-name.ts";

it("a path that is UTF-8 is its own name", () => {
  expect(patternOfBrokenName("a/é*.txt")).toBeNull();
});

it("a broken name has a pattern that reads everything else literally", () => {
  expect(patternOfBrokenName("a[1]*/\uFFFD?.txt")).toBe(
    String.raw`:(glob)a\[1]\*/` + "[!\x01-\x7f]" + String.raw`\?.txt`,
  );
});
