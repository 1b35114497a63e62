import { defineConfig } from "vitest/config";
import { ClosingLine } from "./support/vitest/reporter.ts";
import { RealPartsFirst } from "./support/vitest/sequencer.ts";
import { DEEP, EVERY_TEST, REAL } from "../vitest.config.ts";

/** Simulated runs take longest. They begin first, and the other files fill the second core. */
const SIMULATION = "test/simulation/simulation.test.ts";

/** These ask for a database (test/tidy/rings.test.ts). */
export const WITH_POSTGRES = ["test/services/connectors/connector-renewal.test.ts"];

/**
 * `npm run test:fast`: what needs only memory. It offers no Postgres, so a file that asks for a database fails here. It starts no
 * sandbox and no browser.
 */
// eslint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  test: {
    globalSetup: ["test/support/vitest/temporary-files.ts"],
    maxWorkers: 2,
    sequence: { sequencer: RealPartsFirst },
    reporters: ["default", new ClosingLine()],
    projects: [
      { test: { ...EVERY_TEST, name: "simulation", include: [SIMULATION] } },
      {
        test: {
          ...EVERY_TEST,
          name: "memory",
          include: [
            "test/{actors,domain,duties,features,ground,machines,proxy,services}/**/*.test.ts",
            "test/cli/grammar.test.ts",
            "test/{git,sandbox}/simulated.test.ts",
            "test/store/memory.test.ts",
          ],
          exclude: [DEEP, REAL, ...WITH_POSTGRES],
          isolate: false,
        },
      },
    ],
  },
});
