/** Unified diffs of texts that an agent reports before and after a change. */

/** Unchanged lines around a change. */
const CONTEXT = 3;

const splitLines = (text: string): readonly string[] => {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
};

const range = (start: number, count: number): string => `${count === 0 ? start : start + 1},${count}`;

/**
 * The change as one hunk, from the first line that differs to the last one. Agents may report only the part of a file
 * that they replace. Then line numbers count from that part's beginning.
 *
 * @param before null: the file is new
 */
export const makePatch = (path: string, before: string | null, after: string): string => {
  const from = splitLines(before ?? "");
  const to = splitLines(after);
  const shorter = Math.min(from.length, to.length);
  let head = 0;
  while (head < shorter && from[head] === to[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && from[from.length - 1 - tail] === to[to.length - 1 - tail]) tail += 1;
  const start = Math.max(0, head - CONTEXT);
  const below = Math.min(tail, CONTEXT);
  const fromEnd = from.length - tail;
  const toEnd = to.length - tail;
  return [
    before === null ? "--- /dev/null" : `--- ${path}`,
    `+++ ${path}`,
    `@@ -${range(start, fromEnd + below - start)} +${range(start, toEnd + below - start)} @@`,
    ...from.slice(start, head).map((line) => ` ${line}`),
    ...from.slice(head, fromEnd).map((line) => `-${line}`),
    ...to.slice(head, toEnd).map((line) => `+${line}`),
    ...from.slice(fromEnd, fromEnd + below).map((line) => ` ${line}`),
    "",
  ].join("\n");
};
