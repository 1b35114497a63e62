/** Finds the agent runtime's program on this machine: the one from the npm packages, otherwise one on the PATH. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(import.meta.url);

/** Packages that carry a runtime's binary, by the command's name. */
const PACKAGED: Readonly<Record<string, readonly string[]>> = { opencode: ["opencode-linux-x64"] };

/**
 * @param command the agent command; its first word is the program.
 * @param searchPath the service's PATH.
 * @returns the files to put on the sandbox's PATH. Empty if the program is in the sandbox anyway.
 */
export function agentBinaries(command: readonly string[], searchPath: string): readonly string[] {
  const [program = ""] = command;
  const packaged = (PACKAGED[program] ?? []).flatMap((name) => {
    try {
      return [path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", program)];
    } catch {
      // The package is not installed on this platform: search the PATH instead.
      return [];
    }
  });
  const onPath = searchPath.split(path.delimiter).map((directory) => path.join(directory, program));
  const found = [...packaged, ...onPath].find((file) => existsSync(file));
  return found === undefined ? [] : [found];
}
