/** The pure rings get the time from their callers. The linter forbids `Date.now`; it cannot tell `new Date()` from `new Date(ms)`. */
import { expect, it } from "vitest";
import { files, read } from "../support/documents.ts";

it("reads no clock in the domain, the machines and the rules of features", () => {
  const pure = files("src/domain/*.ts", "src/machines/*.ts", "src/features/*/rules/*.ts");
  expect(pure.length).toBeGreaterThan(100);
  expect(pure.filter((file) => /new Date\(\)|\bDate\(\)/.test(read(file)))).toEqual([]);
});
