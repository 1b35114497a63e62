/** Finds the programs of agent runtimes on this machine: the one from the npm packages, otherwise one on the PATH. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import type { OfferedRuntimes } from "../../domain/runtimes/runtimes.ts";

const require = createRequire(import.meta.url);

/** Packages that carry a runtime's binary, by the command's name. */
const PACKAGED: Readonly<Record<string, readonly string[]>> = { opencode: ["opencode-linux-x64"] };

/**
 * @param searchPath the service's PATH.
 * @returns the files to put on the sandbox's PATH: the program of the installation's own runtime, and of others whose program is one
 * file. Without those that are not on this machine: they may be in the sandbox anyway.
 */
export const agentBinaries = ([own, ...others]: OfferedRuntimes, searchPath: string): readonly string[] => {
  const commands = [own, ...others.filter(({ isOneFile }) => isOneFile)].map(({ command }) => command ?? []);
  const files = commands.flatMap((command) => agentBinary(command, searchPath) ?? []);
  return [...new Set(files)];
};

/** @returns the file of a command's program on this machine. Null if it is missing. */
export function agentBinary([program = ""]: readonly string[], searchPath: string): string | null {
  const packageFiles = (PACKAGED[program] ?? []).flatMap((name) => {
    try {
      return [path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", program)];
    } catch {
      // The package is not installed on this platform: search the PATH instead.
      return [];
    }
  });
  const onPath = searchPath.split(path.delimiter).map((directory) => path.join(directory, program));
  return [...packageFiles, ...onPath].find((file) => existsSync(file)) ?? null;
}
