import type { LaunchRuntime } from "../../../src/domain/sandbox/launch.ts";

/** The agent runtime of a sandbox whose agent no test asks. */
export const PLAIN_RUNTIME: LaunchRuntime = {
  adapter: "plain",
  command: ["true"],
  variables: {},
  permissions: null,
};
