/** The parts that a save does not store, or that a restoration leaves out, each with the reason (api.md 7). */
import { cutText, storableText } from "../../src/domain/text.ts";

const REASONS = {
  ignored: "ignored by git",
  too_large: "larger than 10 MiB",
  nested_repository: "a nested git repository",
  unreadable: "cannot be read or stored",
  special: "neither a file nor a link",
  too_many: "more than 500 branches, tags and stashes",
  too_much: "more than 100 MiB of history that the remote does not have",
  too_many_worktrees: "more than 16 worktrees",
  foreign: "copies of another remote's branches",
  missing_worktree: "a worktree whose directory is missing",
  slow: "not stored in time",
  refused: "refused by the remote",
  changed_since: "changed on the branch since the save",
  submodule: "a submodule",
  git_directory: "a path into git's own directory",
} as const;

export type SkipReason = keyof typeof REASONS;

/** How many skipped paths are listed, and how much of each. */
const MAX_SKIPPED = 200;
const MAX_PATH_LENGTH = 512;

/** Paths are bytes, held as latin1 text. */
export class Skipped {
  readonly #reasons: Map<string, SkipReason>;
  readonly #prefix: string;

  constructor(reasons = new Map<string, SkipReason>(), prefix = "") {
    this.#reasons = reasons;
    this.#prefix = prefix;
  }

  add(path: string, reason: SkipReason): void {
    this.#reasons.set(this.#prefix + path, reason);
  }

  /** Removes a path that is stored after all. */
  remove(path: string): void {
    this.#reasons.delete(this.#prefix + path);
  }

  /** The same list, for paths within a directory. */
  within(prefix: string): Skipped {
    return new Skipped(this.#reasons, prefix);
  }

  /** The most important ones first. The last entry counts the ones that are not listed. */
  get named(): readonly { readonly path: string; readonly reason: string }[] {
    const named = [...this.#reasons]
      .toSorted(([, a], [, b]) => Number(a === "ignored") - Number(b === "ignored"))
      .slice(0, MAX_SKIPPED)
      .map(([path, reason]) => ({ path: textOf(path), reason: REASONS[reason] }));
    const rest = this.#reasons.size - named.length;
    return rest === 0 ? named : [...named, { path: "…", reason: `${rest} more were skipped` }];
  }
}

/** A path for people: bytes that are not UTF-8 are replaced. */
const textOf = (path: string): string =>
  cutText(storableText(Buffer.from(path, "latin1").toString("utf8")), MAX_PATH_LENGTH);
