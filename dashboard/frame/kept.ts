/**
 * What this tab keeps. In its storage: text that a reader typed and did not send yet. A reload, or a way through other pages,
 * does not lose it, and signing out removes it. In memory: the data of pages that were shown lately. The page shows it
 * at once when the reader comes back, and reads it again.
 */

const PREFIX = "typed:";

/** @returns null if nothing is kept */
// eslint-disable-next-line typescript/no-explicit-any -- who keeps it knows its form
export const readKept = (name: string): any => {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? "null");
  } catch {
    return null;
  }
};

/** @param value null removes it */
export const keep = (name: string, value: unknown) => {
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

/** By address. */
const recent = new Map<string, { data: unknown; at: number }>();

export const keepRecent = (hash: string, data: unknown) => {
  recent.delete(hash);
  recent.set(hash, { data, at: performance.now() });
  const [oldest] = recent.keys();
  if (recent.size > PAGES_MAX && oldest !== undefined) recent.delete(oldest);
};

/** @returns null: the page was not shown lately */
export const recentData = (hash: string): unknown => {
  const kept = recent.get(hash);
  return kept !== undefined && performance.now() - kept.at < SHOWN_MS ? kept.data : null;
};

/** Other memories of pages that are not shown (api/queries.ts). */
const others = new Set<() => void>();

export const forgetWithRecent = (forget: () => void) => others.add(forget);

/** After an action of a person, which may change any page, and when the person signs out. */
export const forgetRecent = () => {
  recent.clear();
  for (const forget of others) forget();
};

/** A wish of the reader that her browser keeps, such as shortcuts that are off. Where the storage is forbidden, it is not kept. */
export const browserWish = (name: string) => ({
  is: (): boolean => {
    try {
      return localStorage.getItem(name) !== null;
    } catch {
      return false;
    }
  },
  set: (is: boolean): void => {
    try {
      if (is) localStorage.setItem(name, "yes");
      else localStorage.removeItem(name);
    } catch {
      // The storage is forbidden.
    }
  },
});
