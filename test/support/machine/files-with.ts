/** Searches a directory that is in use. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** The result of a read. Null: the file or directory was removed meanwhile. */
const unlessGone = <A>(where: string, read: () => A): A | null => {
  try {
    return read();
  } catch (error) {
    if (existsSync(where)) throw error;
    return null;
  }
};

/**
 * The files below a directory that contain a text. A file or directory that is removed during the search is skipped.
 *
 * @throws the system's error for a file that exists and cannot be read.
 */
export const filesWith = (text: string, directory: string): readonly string[] => {
  const entries = unlessGone(directory, () => readdirSync(directory, { withFileTypes: true })) ?? [];
  return entries.flatMap((entry) => {
    const where = path.join(directory, entry.name);
    if (entry.isDirectory()) return filesWith(text, where);
    if (!entry.isFile()) return [];
    return unlessGone(where, () => readFileSync(where))?.includes(text) === true ? [where] : [];
  });
};
