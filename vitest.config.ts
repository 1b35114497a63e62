import { defineConfig } from "vitest/config";

// Real parts (Postgres, sandboxes, the agent runtime) are slow to start on a loaded machine: the limits below
// end a hung test, they assert nothing about speed.
// eslint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "test/**/*.deep.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
