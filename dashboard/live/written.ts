/** The sessions that the reader wrote to last, in this browser. */
const WRITTEN = "written-to";
/** So many are remembered. */
export const WRITTEN_MAX = 10;

/** @returns the paths of their sessions in the API, the last one first */
export const writtenTo = (): string[] => {
  try {
    const kept = JSON.parse(localStorage.getItem(WRITTEN) ?? "[]");
    return Array.isArray(kept) ? kept.filter((path) => typeof path === "string") : [];
  } catch {
    return [];
  }
};

/** @param path the session's path in the API */
export const noteWritten = (path: string) => {
  try {
    const paths = [path, ...writtenTo().filter((one) => one !== path)].slice(0, WRITTEN_MAX);
    localStorage.setItem(WRITTEN, JSON.stringify(paths));
  } catch {
    // Where the storage is forbidden, the browser tells nothing.
  }
};
