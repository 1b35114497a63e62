/** The name that a person may have meant. */

/** How many letters must be added, removed or replaced to make one text of the other. */
const distance = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (let column = 1; column <= to.length; column += 1) {
      const replaceCost = (row[column - 1] ?? 0) + (letter === to[column - 1] ? 0 : 1);
      next.push(Math.min(replaceCost, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
};

/**
 * The nearest of some names: one with a further part after an underscore, such as a unit, or that differs by few of its letters.
 *
 * @param most how many letters may differ
 * @returns null if none is near
 */
export const nearest = (
  name: string,
  names: readonly string[],
  most = Math.floor(name.length / 4),
): string | null => {
  const longer = names.find((one) => one.startsWith(`${name}_`) && !one.slice(name.length + 1).includes("_"));
  if (longer !== undefined) return longer;
  const near = names
    .map((one) => ({ one, apart: distance(name, one) }))
    .filter(({ apart }) => apart <= most)
    .toSorted((a, b) => a.apart - b.apart);
  return near[0]?.one ?? null;
};
