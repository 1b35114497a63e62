/** The agent's config directory in the checkout (spec.md 4.5, api.md 4 "Config directory"). */
import * as Result from "effect/Result";

export const DEFAULT_CONFIG_DIR = ".platform/runtime";

/**
 * Reads a config directory: a path inside the checkout (threats.md M15).
 *
 * @returns the path without `.` and empty segments, or one sentence that says what is wrong.
 */
export const parseConfigDir = (value: unknown): Result.Result<string, string> => {
  if (typeof value !== "string") return Result.fail("config_dir must be a string.");
  const segments = value.split("/").filter((segment) => segment !== "" && segment !== ".");
  const leavesCheckout = value.startsWith("/") || segments.includes("..");
  if (leavesCheckout || segments.length === 0 || segments[0] === ".git") {
    return Result.fail("config_dir must be a directory inside the repository, such as .platform/runtime.");
  }
  return value.length > 512 || /[\p{Cc}\\]/u.test(value)
    ? Result.fail("config_dir must have at most 512 characters and no control characters or backslashes.")
    : Result.succeed(segments.join("/"));
};
