/** The operator's logo, which stands before the installation's name (PLATFORM_LOGO). */
import { readFileSync } from "node:fs";
import type { Content } from "./page-bundle.ts";

/** Every reader loads it with the page. */
const LOGO_MAX = 64 * 1024;

const PNG = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
const SVG = /^\uFEFF?\s*(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]*?-->\s*)*<svg[\s>]/;

const fileName = (content: Buffer): string | null => {
  if (content.subarray(0, PNG.length).equals(PNG)) return "logo.png";
  return SVG.test(content.toString("utf8")) ? "logo.svg" : null;
};

/** @throws Error if the file is no logo: the service does not start. */
export const readLogo = (file: string): Content => {
  let plain: Buffer;
  try {
    plain = readFileSync(file);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    throw new Error(`PLATFORM_LOGO names ${file}, which cannot be read: ${code}`, { cause: error });
  }
  if (plain.length > LOGO_MAX)
    throw new Error(
      `PLATFORM_LOGO names ${file}, which has ${plain.length} bytes; a logo has at most ${LOGO_MAX}`,
    );
  const name = fileName(plain);
  if (name === null)
    throw new Error(`PLATFORM_LOGO names ${file}, which is neither an SVG nor a PNG picture`);
  return { name, plain };
};
