/** Names of files that are not UTF-8. Lists show a replacement character for each byte that cannot be read. */
const BROKEN = "\uFFFD";

/**
 * Git's pattern for the files that a list shows under this path: any byte of no ASCII character stands for the replacement
 * character. It holds with `GIT_LITERAL_PATHSPECS=0`. Null if the path has no such character, and is its own name.
 */
export const patternOfBrokenName = (path: string): string | null =>
  path.includes(BROKEN)
    ? `:(glob)${path.replaceAll(/[*?[\\]/g, String.raw`\$&`).replaceAll(BROKEN, "[!\x01-\x7f]")}`
    : null;
