/** The agent's config directory in the checkout (spec.md 4.5, api.md 4 "Config directory"). */
import * as Result from "effect/Result";

export const DEFAULT_CONFIG_DIR = ".platform/runtime";

/**
 * Reads a path inside the checkout (threats.md M15).
 *
 * @param name how messages call it
 * @param what what it must be, with an example
 * @returns the path without `.` and empty segments, or one sentence that says what is wrong.
 */
export const parseInside = (value: unknown, name: string, what: string): Result.Result<string, string> => {
  if (typeof value !== "string") return Result.fail(`${name} must be a string.`);
  const segments = value.split("/").filter((segment) => segment !== "" && segment !== ".");
  const leavesCheckout = value.startsWith("/") || segments.includes("..");
  if (leavesCheckout || segments.length === 0 || segments[0] === ".git")
    return Result.fail(`${name} must be ${what}.`);
  return value.length > 512 || /[\p{Cc}\\]/u.test(value)
    ? Result.fail(`${name} must have at most 512 characters and no control characters or backslashes.`)
    : Result.succeed(segments.join("/"));
};

/** Reads a config directory. @returns the path, or one sentence that says what is wrong. */
export const parseConfigDir = (value: unknown): Result.Result<string, string> =>
  parseInside(value, "config_dir", "a directory inside the repository, such as .platform/runtime");
