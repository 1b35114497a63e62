import { defineConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** `npm run test:deep`: the tests that take longer than a person waits, one file at a time. */
// eslint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  test: {
    ...base.test,
    include: ["test/**/*.deep.test.ts"],
    exclude: ["**/node_modules/**"],
    testTimeout: 1_800_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
  },
});
