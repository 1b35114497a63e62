/** Where the agent runtime's configuration lies in the checkout (spec.md 4.5, api.md 4 `[runtime] config_dir`). */
import { realpathSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { parse } from "smol-toml";

export const DEFAULT_CONFIG_DIR = ".platform/runtime";

/** The directory's absolute path, and what was wrong with the manifest's setting where the default stands in. */
export interface ConfigDir {
  readonly path: string;
  readonly problem: string | null;
}

/**
 * @param manifest text of platform.toml at the checked-out commit; empty where there is none.
 * @param workspace absolute path of the checkout, which the result never leaves (threats.md M15).
 */
export const configDirOf = (manifest: string, workspace: string): ConfigDir => {
  const fallback = (problem: string): ConfigDir => ({ path: join(workspace, DEFAULT_CONFIG_DIR), problem });
  let setting: unknown;
  try {
    const runtime: unknown = parse(manifest)["runtime"];
    setting = isTable(runtime) ? runtime["config_dir"] : undefined;
  } catch {
    return fallback("platform.toml cannot be read: it is not valid TOML");
  }
  if (setting === undefined) return { path: join(workspace, DEFAULT_CONFIG_DIR), problem: null };
  if (typeof setting !== "string" || setting === "" || setting.includes("\0")) {
    return fallback("[runtime] config_dir must be a path");
  }
  const path = resolve(workspace, setting);
  if (
    setting.startsWith("/") ||
    !isWithin(path, workspace) ||
    !isWithin(realPath(path), realPath(workspace))
  ) {
    return fallback("[runtime] config_dir must lie inside the repository");
  }
  return { path, problem: null };
};

const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isWithin = (path: string, directory: string): boolean => {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`);
};

/** Where a path leads when every symlink that exists on it is followed. */
const realPath = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    const parent = resolve(path, "..");
    return parent === path ? path : join(realPath(parent), relative(parent, path));
  }
};
