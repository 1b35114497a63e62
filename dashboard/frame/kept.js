/**
 * What this tab keeps. In its storage: text that a reader typed and did not send yet. A reload, or a way through other pages,
 * does not lose it, and signing out removes it. In memory: the data of pages that were shown lately. The page shows it
 * at once when the reader comes back, and reads it again.
 */

const PREFIX = "typed:";

/**
 * @param {string} name
 * @returns {any} null if nothing is kept
 */
export const readKept = (name) => {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? "null");
  } catch {
    return null;
  }
};

/** @param {string} name @param {unknown} value null removes it */
export const keep = (name, value) => {
  try {
    if (value === null) sessionStorage.removeItem(PREFIX + name);
    else sessionStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // The storage is full or forbidden. The page itself still has the text.
  }
};

export const forgetKept = () => {
  try {
    for (const name of Object.keys(sessionStorage)) {
      if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
    }
  } catch {
    // Nothing is kept where the storage is forbidden.
  }
};

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

/** Other memories of pages that are not shown (api/queries.ts). @type {Set<() => void>} */
const others = new Set();

/** @param {() => void} forget */
export const forgetWithRecent = (forget) => others.add(forget);

/** After an action of a person, which may change any page, and when the person signs out. */
export const forgetRecent = () => {
  recent.clear();
  for (const forget of others) forget();
};
