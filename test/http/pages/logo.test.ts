/** The operator's logo (PLATFORM_LOGO) is read at the start, which says why it refuses one. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { readLogo } from "../../../src/http/pages/logo.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";

const { directory, remove } = guardedDirectory("logo-");
afterAll(remove);

const written = (name: string, content: string | Buffer): string => {
  const file = path.join(directory, name);
  writeFileSync(file, content);
  return file;
};

test("is a picture whose first bytes say its kind, whatever the file is called", () => {
  const svg = '\uFEFF<?xml version="1.0"?>\n<!-- ours -->\n<svg xmlns="http://www.w3.org/2000/svg"/>';
  expect(readLogo(written("a.txt", svg)).name).toBe("logo.svg");
  expect(readLogo(written("b", Buffer.from("\x89PNG\r\n\x1a\nrest", "latin1"))).name).toBe("logo.png");
});

test.each([
  ["page.svg", "<html><svg/></html>", /page\.svg, which is neither an SVG nor a PNG picture$/],
  [
    "large.svg",
    `<svg>${" ".repeat(64 * 1024)}`,
    /large\.svg, which has 65541 bytes; a logo has at most 65536$/,
  ],
])("refuses %s with the reason", (name, content, reason) => {
  expect(() => readLogo(written(name, content))).toThrow(reason);
});

test("refuses a missing file with the setting's name", () => {
  expect(() => readLogo(path.join(directory, "none.svg"))).toThrow(
    /^PLATFORM_LOGO names .*none\.svg, which cannot be read: ENOENT$/,
  );
});
