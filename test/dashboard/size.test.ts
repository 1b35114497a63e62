import { expect, it } from "vitest";
import { pageSize, SIZE_MAX_KB } from "../bench/page/size.ts";

it("is a page of at most 150 kB, compressed", async () => {
  const { files, gzippedKb } = await pageSize();
  expect(files).toBeGreaterThan(50);
  expect(gzippedKb).toBeGreaterThan(50);
  expect(gzippedKb).toBeLessThanOrEqual(SIZE_MAX_KB);
});
