/** The results of a start are built once, and again if anything is in doubt. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import * as Schema from "effect/Schema";
import { afterEach, beforeEach, expect, it } from "vitest";
import { madeOnce, NotBuilt } from "../src/ground/build-cache.ts";

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

it("is not kept if a file that it was made of changed meanwhile", async () => {
  const source = path.join(root, "source");
  const recipe = { file: path.join(root, "kept.json"), key: "key", schema: Schema.Uint8ArrayFromBase64 };
  await madeOnce({
    ...recipe,
    make: async () => {
      // Of the time of files, a system may know steps of ten milliseconds only.
      await setTimeout(20);
      writeFileSync(source, "two");
      return { value: new Uint8Array([1]), inputs: [source] };
    },
  });
  expect([...(await ask("kept.json"))]).toEqual([...VALUE]);
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

it("is built again if its files are named by absolute paths: they may belong to another clone", async () => {
  await ask();
  const file = path.join(root, "new/kept.json");
  const [, body = ""] = /^[^\n]*\n(.*)$/s.exec(readFileSync(file, "utf8")) ?? [];
  const record = JSON.parse(body) as { readonly inputs: readonly string[] };
  expect(record.inputs.some((input) => path.isAbsolute(input))).toBe(false);
  const other = JSON.stringify({ ...record, inputs: [path.join(root, "source")] });
  writeFileSync(file, `${createHash("sha256").update(other).digest("hex")}\n${other}`);
  await ask();
  expect(made).toBe(2);
});

/** As Node fails for a package that is not installed. */
const lacking = (name: string) => () =>
  Promise.reject(
    Object.assign(new Error(`Cannot find package '${name}' imported from /srv/platform/daemon/bundle.ts`), {
      code: "ERR_MODULE_NOT_FOUND",
    }),
  );

it("names npm run build if the bundler is not installed, unless the kept result is of the same files", async () => {
  const recipe = { file: path.join(root, "kept.json"), key: "key", schema: Schema.Uint8ArrayFromBase64 };
  const start = () => madeOnce({ ...recipe, make: lacking("esbuild") });
  await expect(start()).rejects.toThrow(/^The service is not built.*`npm ci && npm run build`/);
  await ask("kept.json");
  expect([...(await start())]).toEqual([...VALUE]);
  writeFileSync(path.join(root, "source"), "newer");
  await expect(start()).rejects.toThrow(NotBuilt);
  await expect(madeOnce({ ...recipe, make: lacking("vite") })).rejects.toThrow(NotBuilt);
  await expect(madeOnce({ ...recipe, make: lacking("effect") })).rejects.not.toThrow(NotBuilt);
});

it("is built even if nothing can be kept", async () => {
  expect([...(await ask("source/kept.json"))]).toEqual([...VALUE]);
});
