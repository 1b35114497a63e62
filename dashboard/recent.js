/** The data of pages that were shown lately. The page shows it at once when the reader comes back, and reads it again. */

/** How many pages' data is kept, and how long it may be shown before the answer arrives. */
const PAGES_MAX = 12;
const SHOWN_MS = 60_000;

/** By address. @type {Map<string, {data: any, at: number}>} */
const recent = new Map();

/** @param {string} hash @param {any} data */
export const keepRecent = (hash, data) => {
  recent.delete(hash);
  recent.set(hash, { data, at: performance.now() });
  const [oldest] = recent.keys();
  if (recent.size > PAGES_MAX && oldest !== undefined) recent.delete(oldest);
};

/** @param {string} hash @returns {any} null: the page was not shown lately */
export const recentData = (hash) => {
  const kept = recent.get(hash);
  return kept !== undefined && performance.now() - kept.at < SHOWN_MS ? kept.data : null;
};

/** After an action of a person, which may change any page. */
export const forgetRecent = () => recent.clear();
