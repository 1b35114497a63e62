/** Errors in a manifest, with their places. */

/** One error, as the trigger listing shows it. Unknown parts are null. */
export interface ManifestError {
  /** The entry's slug as written, if it is valid in length. */
  readonly slug: string | null;
  /** Number of the entry in the file, from 0. */
  readonly index: number | null;
  /** The field, e.g. `triggers[2].cron`. */
  readonly path: string | null;
  readonly message: string;
  /** The line in the file, from 1: of the mistake, or of the entry's header. */
  readonly line: number | null;
}

export interface EntryPlace {
  readonly index: number;
  readonly line: number | null;
}

/** Number of the first line that matches, from 1. */
export const lineMatching = (text: string, pattern: RegExp): number | null => {
  const index = text.split("\n").findIndex((line) => pattern.test(line));
  return index === -1 ? null : index + 1;
};

/**
 * The lines of the headers `[[<table>]]`. A multi-line text may contain a line that looks like a header. If the number of
 * headers differs from the number of entries, the result is null rather than wrong lines.
 */
export const headerLines = (text: string, table: string, entryCount: number): readonly number[] | null => {
  const header = new RegExp(String.raw`^[ \t]*\[\[[ \t]*${table}[ \t]*\]\]`);
  const lines = text.split("\n").flatMap((line, index) => (header.test(line) ? [index + 1] : []));
  return lines.length === entryCount ? lines : null;
};
