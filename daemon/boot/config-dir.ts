/**
 * The directory of the agent runtime's configuration in the checkout (spec.md 4.5, api.md 4 "Config directory").
 */
import { realpathSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { DEFAULT_CONFIG_DIR } from "../../src/domain/manifest/config-dir.ts";

/**
 * The directory's absolute path. If the manifest's setting is invalid, `path` is the default and `problem` the error.
 */
export interface ConfigDir {
  readonly path: string;
  readonly problem: string | null;
}

/** Used if the default also leads out of the checkout: no commit can create a file there (threats.md G07). */
const NO_CONFIG_DIR = ".git/runtime";

/**
 * @param manifest text of platform.toml at the checked-out commit; empty if the file is missing.
 * @param workspace absolute path of the checkout. The result is always inside it, even through links (threats.md M15).
 */
export const readConfigDir = async (manifest: string, workspace: string): Promise<ConfigDir> => {
  // Loaded late, because it brings cron expressions and time zones, which cost each start about 10 ms.
  const { parseManifest } = await import("../../src/domain/manifest/manifest.ts");
  const { configDir, errors, fatal } = parseManifest(Buffer.from(manifest));
  const wrong = errors.find(({ path }) => fatal || path === "runtime.config_dir");
  const staysWithin = (path: string): boolean => isWithin(realPath(path), realPath(workspace));
  const path = join(workspace, configDir);
  if (staysWithin(path)) return { path, problem: wrong?.message ?? null };
  const standard = join(workspace, DEFAULT_CONFIG_DIR);
  return {
    path: staysWithin(standard) ? standard : join(workspace, NO_CONFIG_DIR),
    problem: "config_dir must not point outside the repository through a symbolic link.",
  };
};

const isWithin = (path: string, directory: string): boolean => {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`);
};

/** The path with all existing symlinks resolved. */
const realPath = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    const parent = resolve(path, "..");
    return parent === path ? path : join(realPath(parent), relative(parent, path));
  }
};
