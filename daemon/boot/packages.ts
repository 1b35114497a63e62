/**
 * Tells the agent's package managers where the registries are (docs/decisions/0077-package-cache.md): in the files that they read first and
 * that everything else overrides, so a project's `.npmrc`, an image's own settings and a person's variables win.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { writeForAgent } from "../files.ts";
import type { Settings } from "../settings.ts";

/** Where npm of a distribution keeps the settings of all users, whatever Node it runs on. */
const DISTRIBUTION_SETTINGS = ["/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"];

const READABLE_BY_ALL = 0o004;
const OWN_SETTINGS_BYTES = 64 * 1024;

/** npm reads one file for all users: below the prefix of the Node that runs it. */
const readNpmSettings = (searchPath: string): readonly string[] =>
  searchPath.split(":").flatMap((directory) => {
    try {
      return [join(dirname(realpathSync(join(directory, "node"))), "..", "etc", "npmrc")];
    } catch {
      return [];
    }
  });

/** The image's or the project's values of one of npm's variables, which may be in any case. */
const programDirectories = ({ launch }: Settings, name: string): readonly string[] =>
  Object.entries({ ...launch.imageEnv, ...launch.agentEnv }).flatMap(([key, value]) =>
    key.toLowerCase() === name ? [value] : [],
  );

/**
 * What npm's own file for all users says, which ours would hide: it may name a private registry, and then no other one may be asked. Only what the
 * agent could read, too.
 */
const ownSettings = (settings: Settings): string => {
  const prefixes = programDirectories(settings, "npm_config_prefix").map((prefix) =>
    join(prefix, "etc", "npmrc"),
  );
  const files = [...DISTRIBUTION_SETTINGS, ...readNpmSettings(settings.launch.agentPath ?? ""), ...prefixes];
  return [...new Set(files)]
    .map((file) => {
      try {
        const { mode, size } = statSync(file);
        return (mode & READABLE_BY_ALL) !== 0 && size <= OWN_SETTINGS_BYTES ? readFileSync(file, "utf8") : "";
      } catch {
        return "";
      }
    })
    .join("\n");
};

/** The last of several values counts. */
const npmSettings = (registry: string, own: string): string =>
  [
    "; Written by the platform: package files come through the cache of its machine.",
    "; A registry in the project's .npmrc has precedence.",
    `registry=${registry}`,
    // Lockfiles name the registry with https. npm then asks for their files here.
    `replace-registry-host=${new URL(registry).host}`,
    "; What npm's own file for all users says:",
    own,
    "",
  ].join("\n");

const pipSettings = (index: string): string =>
  [
    "# Written by the platform: package files come through the cache of its machine.",
    "[global]",
    `index-url = ${index}`,
    `trusted-host = ${new URL(index).host}`,
    "",
  ].join("\n");

/** Writes the files. Once, before anything of the agent's side starts. */
export const writePackageSettings = (settings: Settings): void => {
  const { npm = null, pypi = null } = settings.launch.packages ?? {};
  const { npmConfigFile, configDirectory } = settings.layout;
  if (npm !== null && programDirectories(settings, "npm_config_globalconfig").length === 0)
    writeForAgent(npmConfigFile, npmSettings(npm, ownSettings(settings)));
  if (pypi === null) return;
  mkdirSync(join(configDirectory, "pip"), { recursive: true, mode: 0o755 });
  writeForAgent(join(configDirectory, "pip", "pip.conf"), pipSettings(pypi));
};

/** The variables that lead to the files. The image's and the project's own ones override them. */
export const packageVariables = ({ launch, layout }: Settings): Record<string, string> => {
  if (launch.packages === undefined) return {};
  const { npmConfigFile, configDirectory } = layout;
  return {
    ...(existsSync(npmConfigFile) && { npm_config_globalconfig: npmConfigFile }),
    // The last directories are those that programs search without the variable.
    ...(launch.packages.pypi !== null && { XDG_CONFIG_DIRS: `${configDirectory}:/etc/xdg` }),
  };
};
