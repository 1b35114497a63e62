/** This machine's programs with which sandboxes are built. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

export interface Tools {
  readonly sh: string;
  readonly unshare: string;
  /** Null if bubblewrap is not installed. */
  readonly bwrap: string | null;
  /** Required programs that are missing, with the packages that contain them. */
  readonly missing: readonly string[];
}

/** Searched after the PATH: an ordinary user's PATH often lacks the administrator's programs. */
const SYSTEM_DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** @param path searched before the system's own directories */
export const findProgram = (name: string, path: string): string | null => {
  for (const directory of [...path.split(delimiter), ...SYSTEM_DIRECTORIES]) {
    if (directory === "") continue;
    try {
      accessSync(join(directory, name), constants.X_OK);
      return join(directory, name);
    } catch {
      // not in this directory
    }
  }
  return null;
};

const NEEDED: Readonly<Record<string, string>> = {
  sh: "a POSIX shell",
  unshare: "util-linux",
  setpriv: "util-linux",
  prlimit: "util-linux",
  mount: "util-linux (mount)",
  pivot_root: "util-linux (mount)",
  chmod: "coreutils",
  du: "coreutils",
  rm: "coreutils",
};

/** @param path the service's own PATH */
export const findTools = (path: string): Tools => ({
  sh: findProgram("sh", path) ?? "/bin/sh",
  unshare: findProgram("unshare", path) ?? "/usr/bin/unshare",
  bwrap: findProgram("bwrap", path),
  missing: Object.entries(NEEDED)
    .filter(([name]) => findProgram(name, path) === null)
    .map(([name, where]) => `${name} (${where})`),
});
