import { browserChoice } from "../frame/kept.ts";

/** The sessions that the reader wrote to last, in this browser. */
const WRITTEN = "written-to";
/** So many are remembered. */
export const WRITTEN_MAX = 10;

const written = browserChoice<readonly string[]>(WRITTEN, (kept) =>
  Array.isArray(kept) ? kept.filter((path) => typeof path === "string") : [],
);

/** @returns the paths of their sessions in the API, the last one first */
export const writtenTo = (): readonly string[] => written.read();

/** @param path the session's path in the API */
export const noteWritten = (path: string): void => {
  written.keep([path, ...writtenTo().filter((one) => one !== path)].slice(0, WRITTEN_MAX));
};
