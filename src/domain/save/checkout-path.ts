/** Which paths git would check out. A restoration writes no others, because they would change git's own directory. */

/** Characters that HFS+ ignores in names. */
const IGNORED_BY_HFS = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
/** The short name that NTFS gives to `.git`, and `.git` with what NTFS ignores at the end of a name. */
const GIT_DIRECTORY = /^(?:\.git|git~1)[ .]*(?::.*)?$/i;

/** A path's bytes are latin1 text, one character a byte. */
const characters = (bytes: string): string => Buffer.from(bytes, "latin1").toString("utf8");

const isPlainName = (name: string): boolean =>
  name !== "" && name !== "." && name !== ".." && name.split("\\").every((part) => !isGitDirectory(part));

const isGitDirectory = (name: string): boolean =>
  GIT_DIRECTORY.test(name) || GIT_DIRECTORY.test(characters(name).replaceAll(IGNORED_BY_HFS, ""));

/** Git reads its own settings from these, and refuses them as links. */
const isSettings = (path: string): boolean => /(?:^|\/)(?:\.gitmodules|gitmod~\d)[ .]*$/i.test(path);

/** Whether git would check out this path of the workspace. `path` is latin1 text, one character a byte. */
export const isCheckoutPath = (path: string, mode = "100644"): boolean =>
  !path.includes("\0") && path.split("/").every(isPlainName) && !(mode === "120000" && isSettings(path));
