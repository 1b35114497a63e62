/**
 * What this tab and its browser keep. In the tab's storage: text that a reader typed and did not send yet. A reload, or a way through other pages,
 * does not lose it. In the browser's storage, for all tabs: messages that the service does not have yet. Signing out removes both. There, too: choices of the reader. In memory: the
 * data of pages that were shown lately. The page shows it at once when the reader comes back, and reads it again.
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

/** @param storage is forbidden in some browsers, where the page itself still has the text */
const put = (storage: () => Storage, name: string, value: unknown) => {
  try {
    if (value === null) storage().removeItem(PREFIX + name);
    else storage().setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // It is full or forbidden.
  }
};

/** @param value null removes it */
export const keep = (name: string, value: unknown) => put(() => sessionStorage, name, value);

/** For all pages of the browser. @param value null removes it */
export const keepShared = (name: string, value: unknown) => put(() => localStorage, name, value);

/** Values that pages of the browser keep under names with this beginning. @typeParam T who keeps it knows its form */
export const readShared = <T>(prefix: string): readonly T[] => {
  try {
    return Object.entries(localStorage)
      .filter(([name]) => name.startsWith(PREFIX + prefix))
      .map(([, text]) => JSON.parse(text));
  } catch {
    return [];
  }
};

/** Hears what other pages of the browser keep and remove. @param changed gets the rest of the name */
export const onShared = (prefix: string, changed: (rest: string, isKept: boolean) => void) => {
  const start = PREFIX + prefix;
  addEventListener("storage", ({ key, newValue }) => {
    if (key?.startsWith(start) === true) changed(key.slice(start.length), newValue !== null);
  });
};

export const forgetKept = () => {
  for (const storage of [() => sessionStorage, () => localStorage]) {
    try {
      for (const name of Object.keys(storage())) if (name.startsWith(PREFIX)) storage().removeItem(name);
    } catch {
      // Nothing is kept where the storage is forbidden.
    }
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

/** The value in the browser's storage. Null: it has none, or is forbidden. A text that is no JSON is from an earlier version. */
const stored = (name: string): unknown => {
  let text: string | null = null;
  try {
    text = localStorage.getItem(name);
    return JSON.parse(text ?? "null");
  } catch {
    return text;
  }
};

/**
 * A choice of the reader that her browser keeps, for all tabs and until she chooses again.
 *
 * @param read makes the value of what is stored, which anyone may have written. Null: nothing is
 */
export const browserChoice = <T>(name: string, read: (kept: unknown) => T) => ({
  read: (): T => read(stored(name)),
  /** @returns false: the storage is full or forbidden, and the value is not kept */
  keep: (value: T): boolean => {
    try {
      localStorage.setItem(name, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  },
});

/** A wish that is off at first, such as to read a terminal aloud. */
export const browserWish = (name: string) =>
  browserChoice(name, (kept) => kept === true || kept === "yes" || kept === "on");

/** An object of that form, with its values in the place of those that are missing. */
export const objectOr = <T extends object>(kept: unknown, first: T): T => ({
  ...first,
  ...(kept !== null && typeof kept === "object" ? kept : {}),
});
