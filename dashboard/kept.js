/**
 * What a reader typed and did not send yet, in the storage of this tab. A reload, or a way through other pages, does not
 * lose it. Signing out removes it.
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
