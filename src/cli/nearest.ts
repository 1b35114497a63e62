/** The word that a person probably meant. */

/** How many single letters two words differ by: inserted, left out, or replaced. */
const distance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (let to = 0; to < other.length; to += 1)
      next.push(
        Math.min(
          (next[to] ?? 0) + 1,
          (row[to + 1] ?? 0) + 1,
          (row[to] ?? 0) + (letter === other[to] ? 0 : 1),
        ),
      );
    row = next;
  }
  return row.at(-1) ?? 0;
};

/** @returns null if none is near: a third of its letters may be wrong */
export const nearest = (word: string, known: Iterable<string>): string | null => {
  let best: { readonly known: string; readonly letters: number } | null = null;
  for (const one of known) {
    const letters = distance(word, one);
    if (letters <= Math.ceil(word.length / 3) && letters < (best?.letters ?? Infinity))
      best = { known: one, letters };
  }
  return best?.known ?? null;
};
