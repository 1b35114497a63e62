/** The operator's logo, which stands before the installation's name (PLATFORM_LOGO). */
import { readFileSync, statSync } from "node:fs";
import type { Content } from "./page-bundle.ts";

/** Every reader loads it with the page. */
const LOGO_MAX = 64 * 1024;

const PNG = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
const SVG = /^\uFEFF?\s*(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]*?-->\s*)*<svg[\s>]/;

const fileName = (content: Buffer): string | null => {
  if (content.subarray(0, PNG.length).equals(PNG)) return "logo.png";
  return SVG.test(content.toString("utf8")) ? "logo.svg" : null;
};

/** A device or a pipe may have no end, so it is not opened. */
const readPicture = (file: string): Buffer | string => {
  try {
    const status = statSync(file);
    if (!status.isFile()) return "is no file";
    if (status.size > LOGO_MAX) return `has ${status.size} bytes; a logo has at most ${LOGO_MAX}`;
    return readFileSync(file);
  } catch (error) {
    return `cannot be read: ${error instanceof Error && "code" in error ? String(error.code) : "unknown error"}`;
  }
};

/** @throws Error if the file is no logo: the service does not start. */
export const readLogo = (file: string): Content => {
  const plain = readPicture(file);
  const name = typeof plain === "string" ? null : fileName(plain);
  if (typeof plain === "string" || name === null)
    throw new Error(
      `PLATFORM_LOGO names ${file}, which ${typeof plain === "string" ? plain : "is neither an SVG nor a PNG picture"}`,
    );
  return { name, plain };
};
