import { defineConfig } from "vitest/config";
import { DEEP_TEST_MS } from "./support/patience.ts";
import { ClosingLine } from "./support/vitest/reporter.ts";
import { DEEP, EVERY_TEST, WHOLE_IN_DEEP } from "../vitest.config.ts";

/**
 * `npm run test:deep`: the tests that take longer than a person waits, one file at a time. Among them are all cases of the files of
 * which `npm test` runs a sample.
 */
// eslint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  test: {
    ...EVERY_TEST,
    globalSetup: ["test/support/postgres/offer.ts"],
    include: [DEEP, ...WHOLE_IN_DEEP],
    provide: { ring: "deep" },
    testTimeout: DEEP_TEST_MS,
    maxWorkers: 1,
    reporters: ["default", new ClosingLine()],
  },
});
