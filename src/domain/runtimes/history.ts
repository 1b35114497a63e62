/**
 * The files in which a runtime keeps its own record of a conversation. They are saved, and brought into a fresh sandbox, so that the
 * runtime goes on with the conversation itself (docs/decisions/0045).
 *
 *  Y1 Only regular files below the home directory that the runtime's record names. A name is a pattern: `*` is any part of one name, `{id}`
 *     the runtime's id of the conversation, and `{id8}` its first eight characters.
 *  Y2 All of them or none: a runtime must not go on with a part of its record.
 */

/** The files of a conversation together, bytes. Larger ones are not saved. */
export const HISTORY_BYTES_MAX = 64 * 1024 * 1024;
export const HISTORY_FILES_MAX = 100;

/** The id comes from the runtime, and becomes a part of names. */
const ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{7,127}$/;
const HOLES = /(\{id8?\}|\*)/;

const escapePattern = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);

/** A part of a pattern's name, as an expression. */
const partPattern = (part: string, id: string): string => {
  if (part === "*") return ".*";
  if (part === "{id}") return escapePattern(id);
  return escapePattern(part === "{id8}" ? id.slice(0, 8) : part);
};

/** One name of a pattern. */
export interface NamePattern {
  /** Null means any name that matches. */
  readonly literal: string | null;
  readonly matches: (name: string) => boolean;
}

const namePattern = (text: string, id: string): NamePattern => {
  const whole = new RegExp(
    `^${text
      .split(HOLES)
      .map((part) => partPattern(part, id))
      .join("")}$`,
    "s",
  );
  return {
    literal: HOLES.test(text) ? null : text,
    matches: (name) =>
      name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name) && whole.test(name),
  };
};

/** The names of each pattern, from the home directory down. Null if no file can have the id in its name. */
export const historyPatterns = (
  files: readonly string[],
  id: string,
): readonly (readonly NamePattern[])[] | null =>
  ID.test(id) ? files.map((file) => file.split("/").map((name) => namePattern(name, id))) : null;

/** Y1. `path` is relative to the home directory. */
export const isHistoryPath = (path: string, files: readonly string[], id: string): boolean => {
  const names = path.split("/");
  return (historyPatterns(files, id) ?? []).some(
    (pattern) => pattern.length === names.length && pattern.every((one, at) => one.matches(names[at] ?? "")),
  );
};
