import { expect, it } from "vitest";
import { LATER_MAX_KB, pageSize, SIZE_MAX_KB } from "../bench/page/size.ts";

/** The page, its styles, two icons, and the parts of its script. */
const FILES_MAX = 16;

it("is a page of at most 130 kB in few files, compressed, and 30 kB for pages that few readers open", async () => {
  const { files, gzippedKb, laterKb } = await pageSize();
  // Each is a request of a new reader.
  expect(files).toBeLessThanOrEqual(FILES_MAX);
  expect(gzippedKb).toBeGreaterThan(50);
  expect(gzippedKb).toBeLessThanOrEqual(SIZE_MAX_KB);
  expect(laterKb).toBeGreaterThan(1);
  expect(laterKb).toBeLessThanOrEqual(LATER_MAX_KB);
});
