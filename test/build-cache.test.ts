/** The results of a start are built once, and again if anything is in doubt. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Schema from "effect/Schema";
import { afterEach, beforeEach, expect, it } from "vitest";
import { madeOnce } from "../src/build-cache.ts";

let root: string;
let made: number;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "build-cache-"));
  made = 0;
  writeFileSync(path.join(root, "source"), "one");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const VALUE = new Uint8Array([0, 255, 10]);
const ask = (file = "new/kept.json", key = "key") =>
  madeOnce({
    file: path.join(root, file),
    key,
    schema: Schema.Uint8ArrayFromBase64,
    make: () => {
      made += 1;
      return Promise.resolve({ value: VALUE, inputs: [path.join(root, "source")] });
    },
  });

it("is built once of the same files", async () => {
  expect([...(await ask())]).toEqual([...VALUE]);
  expect([...(await ask())]).toEqual([...VALUE]);
  expect(made).toBe(1);
});

it("is built again for another key", async () => {
  await ask();
  await ask(undefined, "other key");
  expect(made).toBe(2);
});

it.each([
  ["has another content of the same length", () => writeFileSync(path.join(root, "source"), "two")],
  ["is gone", () => rmSync(path.join(root, "source"))],
])("is built again if a file that it was made of %s", async (_, change) => {
  await ask();
  change();
  expect([...(await ask())]).toEqual([...VALUE]);
  expect(made).toBe(2);
});

it.each([
  ["cut", (text: string) => text.slice(0, -20)],
  ["changed", (text: string) => text.replace('"key"', '"kex"')],
  ["empty", () => ""],
])("is built again if the cache is %s", async (_, damage) => {
  await ask();
  const file = path.join(root, "new/kept.json");
  writeFileSync(file, damage(readFileSync(file, "utf8")));
  expect([...(await ask())]).toEqual([...VALUE]);
  expect(made).toBe(2);
});

it("is built even if nothing can be kept", async () => {
  expect([...(await ask("source/kept.json"))]).toEqual([...VALUE]);
});
