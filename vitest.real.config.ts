import { defineConfig } from "vitest/config";
import { ClosingLine } from "./test/support/vitest/reporter.ts";
import { GLOBAL_SETUP, LIMITS, PAGE_LIBRARY, REAL, WORKERS } from "./vitest.config.ts";

/**
 * `npm run test:real`: whole services with real sandboxes, the real agent runtime, and a browser. A start of the agent runtime
 * alone costs several seconds of CPU time, so these files are apart from `npm test`. `.ci/run` runs both.
 */
// eslint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  resolve: { alias: [PAGE_LIBRARY] },
  test: {
    ...LIMITS,
    globalSetup: GLOBAL_SETUP,
    include: [REAL],
    maxWorkers: WORKERS,
    reporters: ["default", new ClosingLine()],
  },
});
