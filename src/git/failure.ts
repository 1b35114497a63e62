/** Reads what git says when it fails. */
import { cutText, storableText } from "../domain/text.ts";
import { GitError } from "./port.ts";

/**
 * Git's error message in one line: the last line that names a fault, otherwise the last line; at most 500 characters.
 */
export const gitMessage = (stderr: string, repository: string | null): string => {
  const damage = damagedObject(stderr);
  if (damage !== null) return damage;
  const lines = stderr.split(/[\r\n]/).filter((line) => line.trim() !== ""); // progress ends with a carriage return
  const line =
    lines.findLast((text) => /^(?:fatal|error):/.test(text)) ?? lines.at(-1) ?? "git printed nothing";
  const text = repository === null ? line : line.replaceAll(repository, "the repository");
  return cutText(storableText(text), 500);
};

const FSCK = /^(?:error: )?object ([0-9a-f]{40,64}): ([A-Za-z0-9]+): (.+)$/m;

/** The object that git's check refused, with the fault's name. Git's last line says only that a program failed. */
export const damagedObject = (stderr: string): string | null => {
  const [, object, fault, words] = FSCK.exec(stderr) ?? [];
  return object === undefined || words === undefined
    ? null
    : cutText(storableText(`The object ${object} has a fault that is not accepted: ${fault}, ${words}`), 500);
};

/** The disk that has the service's repositories is full. */
export const diskFull = (): GitError =>
  new GitError({
    code: "disk_full",
    message: "The disk of the service's data directory is full. The operator has to free some space.",
  });

/** Git's or the system's words for a full disk here. Lines of a server begin with `remote:`. */
const FULL = /^(?!remote:).*(?:No space left on device|Disk quota exceeded)/m;

/** Whether git failed because a disk of this machine is full. */
export const isDiskFull = (stderr: string): boolean => FULL.test(stderr);

/** The error for a git that ended with an unexpected exit code. */
export const gitFailure = (
  subcommand: string,
  { stderr, repository }: { readonly stderr: string; readonly repository: string | null },
): GitError =>
  isDiskFull(stderr)
    ? diskFull()
    : new GitError({ code: "git_failed", message: `git ${subcommand}: ${gitMessage(stderr, repository)}` });
