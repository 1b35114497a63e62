import { defineConfig } from "vitest/config";
import { ClosingLine } from "./test/support/reporter.ts";

// eslint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "test/**/*.deep.test.ts"],
    globalSetup: ["test/support/postgres-server.ts"],
    // Real parts (Postgres, sandboxes, the agent runtime) are slow to start on a loaded machine: the limits end a
    // hung test, they assert nothing about speed.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
    // A worker a core of the smallest machine that is supported: sandboxes and Postgres need what is left.
    maxWorkers: 2,
    reporters: ["default", new ClosingLine()],
  },
});
