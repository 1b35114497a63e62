/** The page's files are made once for the same inputs, and again if anything is in doubt. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { madeOnce, type PageFile } from "../../src/http/pages/page-cache.ts";

let root: string;
let made: number;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "page-cache-"));
  made = 0;
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const FILE: PageFile = {
  name: "page.js",
  type: "text/javascript",
  plain: new Uint8Array([0, 255, 10]),
  gzipped: new Uint8Array([31, 139]),
  tag: '"tag"',
};
const bytes = (files: readonly PageFile[]) =>
  files.map(({ plain, gzipped, ...file }) => ({ ...file, plain: [...plain], gzipped: [...gzipped] }));

const ask = (file: string, ...inputs: string[]) =>
  madeOnce(file, inputs, () => {
    made += 1;
    return Promise.resolve([FILE]);
  });

it("makes files once for the same inputs", async () => {
  const file = path.join(root, "new", "page.json");
  const [first, second] = [await ask(file, "a", "b"), await ask(file, "a", "b")];
  expect(made).toBe(1);
  expect(bytes(second)).toEqual(bytes(first));
});

it.each([[["a", "c"]], [["ab"]], [["b", "a"]]])(
  "makes them again for %j in place of a and b",
  async (inputs) => {
    const file = path.join(root, "page.json");
    await ask(file, "a", "b");
    await ask(file, ...inputs);
    expect(made).toBe(2);
  },
);

it.each([
  ["cut", (text: string) => text.slice(0, -20)],
  ["changed", (text: string) => text.replace("page.js", "page.jz")],
  ["empty", () => ""],
])("makes them again if the cache is %s", async (_, damage) => {
  const file = path.join(root, "page.json");
  await ask(file, "a");
  writeFileSync(file, damage(readFileSync(file, "utf8")));
  expect(bytes(await ask(file, "a"))).toEqual(bytes([FILE]));
  expect(made).toBe(2);
});

it("returns them even if nothing can be kept", async () => {
  writeFileSync(path.join(root, "file"), "");
  expect(bytes(await ask(path.join(root, "file", "page.json"), "a"))).toEqual(bytes([FILE]));
});
