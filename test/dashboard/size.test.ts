import { expect, it } from "vitest";
import { LATER_MAX_KB, pageSize, SIZE_MAX_KB } from "../bench/page/size.ts";

it("is a page of at most 150 kB, compressed, and 30 kB for pages that few readers open", async () => {
  const { files, gzippedKb, laterKb } = await pageSize();
  expect(files).toBeGreaterThan(50);
  expect(gzippedKb).toBeGreaterThan(50);
  expect(gzippedKb).toBeLessThanOrEqual(SIZE_MAX_KB);
  expect(laterKb).toBeGreaterThan(1);
  expect(laterKb).toBeLessThanOrEqual(LATER_MAX_KB);
});
