import { defineConfig, type TestUserConfig } from "vitest/config";
import { ClosingLine } from "./support/vitest/reporter.ts";
import { GLOBAL_SETUP, EVERY_TEST, REAL } from "../vitest.config.ts";

const OF_THE_PAGE = "test/dashboard/**/*.real.test.ts";
const EVERY_REAL_TEST: TestUserConfig = { ...EVERY_TEST, retry: process.env["CI"] === "true" ? 1 : 0 };

/**
 * `npm run test:real`: whole services with real sandboxes, the real agent runtime, a browser, other git servers, and saved
 * checkouts. A start of the agent runtime alone costs several seconds of CPU time, and a case with git some tens of processes. So these files
 * are apart from `npm test`. `.ci/run` runs both.
 *
 * In CI a test that fails runs once more, because 1,000 tests with browsers and processes share two cores there. The closing
 * lines name it (test/support/vitest/reporter.ts).
 */
// eslint-disable-next-line import/no-default-export -- vitest reads the default export
export default defineConfig({
  test: {
    globalSetup: GLOBAL_SETUP,
    // Each file keeps a core busy. With four at a time, single waits took longer than two minutes on a slow machine.
    maxWorkers: 3,
    projects: [
      // The page's tests share workers, and with them a browser and the loaded modules.
      { test: { ...EVERY_REAL_TEST, name: "page", include: [OF_THE_PAGE], isolate: false } },
      {
        test: {
          ...EVERY_REAL_TEST,
          name: "parts",
          include: [REAL],
          exclude: [
            OF_THE_PAGE,
            // `.ci/run` sets them if the machine has no gVisor, or no rights of a container engine, and says so.
            ...(process.env["PLATFORM_CI_WITHOUT_GVISOR"] === "1" ? ["**/gvisor*.real.test.ts"] : []),
            ...(process.env["PLATFORM_CI_WITHOUT_HELM"] === "1" ? ["**/chart.real.test.ts"] : []),
            ...(process.env["PLATFORM_CI_WITHOUT_DOCKER"] === "1" ? ["**/docker*.real.test.ts"] : []),
            ...(process.env["PLATFORM_CI_WITHOUT_PODMAN"] === "1" ? ["**/podman.real.test.ts"] : []),
            // It runs on a cluster that its caller names (the file says how).
            ...(process.env["PLATFORM_TEST_KUBECONFIG"] === undefined ? ["**/own-cluster.real.test.ts"] : []),
          ],
        },
      },
    ],
    reporters: ["default", new ClosingLine("npm run test:real")],
  },
});
