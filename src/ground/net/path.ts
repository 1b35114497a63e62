/** Paths of requests, as clients write them: what a recipient may take them for, and whether they stay below an address. */

/** How often a path may be escaped over and over. More is refused. */
const ESCAPES_MAX = 3;

/** Every recipient's reading of a path: with all escapes resolved. Null if an escape is broken, or there are too many layers. */
const unescapePath = (path: string): string | null => {
  let read = path;
  for (let layer = 0; layer <= ESCAPES_MAX; layer += 1) {
    if (!read.includes("%")) return read;
    try {
      read = decodeURIComponent(read);
    } catch {
      return null;
    }
  }
  return null;
};

/** Some servers take what follows a semicolon for a parameter: to them `..;x` is `..`, and `users;x.whl` is `users`. */
const isOther = (segment: string): boolean => /^\.{1,2}$|;/.test(segment);

/**
 * Whether a path stays below the path of an address, however its recipient reads it: no segment is `.` or `..` or has a semicolon, escaped or not.
 *
 * @param base the address's path; a slash at its end does not count
 * @param target the path as the client wrote it, with or without a query
 */
export const isBelow = (base: string, target: string): boolean => {
  const [path = ""] = target.split(/[?#]/);
  const read = unescapePath(path);
  // eslint-disable-next-line no-control-regex -- some recipients drop them
  if (read === null || /[\u0000-\u001f\u007f]/.test(read) || read.split(/[/\\]/).some(isOther)) return false;
  const root = base.replace(/\/+$/, "");
  return path === root || path.startsWith(`${root}/`);
};
