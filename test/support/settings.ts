/** What refuses a start with some settings. */
import { ConfigError, readConfig, type Environment } from "../../src/settings/config.ts";

/** The problems of these settings. None where a start goes on. */
export const settingProblems = (environment: Environment, directory = "/work"): readonly string[] => {
  try {
    readConfig(environment, directory);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};
