/** Names of images on this machine, with several writers, and after a release that kept them in one file. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { mkdir, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ImageFacts } from "../../src/sandbox/images/image.ts";
import { ImageStore } from "../../src/sandbox/images/store.ts";

let home: string;
let directory: string;
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "image-store-"));
  // Sandboxes of a root service have users of their own.
  chmodSync(home, 0o755);
  directory = path.join(home, "images");
});
afterEach(() => rmSync(home, { recursive: true }));

/** An opener that another process would have. */
const open = () => new ImageStore(directory);
const facts = (digit: number): ImageFacts => ({
  digest: `sha256:${String(digit % 10).repeat(64)}`,
  env: {},
  user: "",
  workdir: "",
  bytes: 10,
  files: 1,
});
const add = async (store: ImageStore, name: string, digit: number) =>
  store.add(name, async (draft) => {
    await mkdir(path.join(draft, "root"));
    await writeFile(path.join(draft, "root", "digit"), String(digit));
    return facts(digit);
  });
const names = async (store = open()) => (await store.list()).map(({ name }) => name);
/** Long after each import, ms since the epoch. */
const LATER = 8e15;

it("keeps every name that processes add and remove at the same time", async () => {
  const stores = Array.from({ length: 8 }, open);
  await Promise.all(stores.map((store, index) => add(store, `tools:${index}`, index)));
  expect(await names()).toEqual(Array.from({ length: 8 }, (_, index) => `tools:${index}`));
  await Promise.all(
    stores.map((store, index) =>
      index % 2 === 0 ? store.remove(`tools:${index}`) : add(store, `more:${index}`, index),
    ),
  );
  expect(await names()).toEqual([
    "more:1",
    "more:3",
    "more:5",
    "more:7",
    "tools:1",
    "tools:3",
    "tools:5",
    "tools:7",
  ]);
});

it("has one image for two names, also if both are added at the same time", async () => {
  const images = await Promise.all([add(open(), "one", 1), add(open(), "other", 1)]);
  expect(new Set(images.map(({ root }) => root)).size).toBe(1);
  expect(readdirSync(directory).filter((entry) => entry.startsWith("."))).toEqual([]);
  expect(await names()).toEqual(["one", "other"]);
  await open().remove("one");
  await open().prune(new Set(), LATER);
  expect(await open().find("other")).toMatchObject({ digest: facts(1).digest });
  expect(existsSync(path.join(images[0].root, "digit"))).toBe(true);
});

it("keeps an image that gets a name while images are removed", async () => {
  const image = await add(open(), "one", 1);
  await open().remove("one");
  await utimes(path.dirname(image.root), new Date(0), new Date(0));
  // The removal has read the names. Now somebody adds the same image.
  const pruning = open().prune(new Set(), LATER);
  await Promise.all([pruning, add(open(), "other", 1)]);
  const found = await open().find("other");
  expect(existsSync(path.join(found?.root ?? "", "digit"))).toBe(true);
});

it("adopts the names of a former release once", async () => {
  await add(open(), "kept", 1);
  await add(open(), "newer", 2);
  await writeFile(
    path.join(directory, "names.json"),
    JSON.stringify({ former: facts(1).digest, newer: facts(1).digest }),
  );
  expect(await open().find("former")).toMatchObject({ digest: facts(1).digest });
  // A name that was given since then stays as it is.
  expect(await open().find("newer")).toMatchObject({ digest: facts(2).digest });
  expect(existsSync(path.join(directory, "names.json"))).toBe(false);
  expect(await names()).toEqual(["former", "kept", "newer"]);
});

it("knows when an image was used last", async () => {
  await add(open(), "one", 1);
  await open().noteUse("one", 5000);
  await open().noteUse("unknown", 5000);
  expect((await open().list()).map(({ usedMs }) => usedMs)).toEqual([5000]);
});

it("keeps an image without a name while work with it begins", async () => {
  const one = await add(open(), "one", 1);
  const other = await add(open(), "other", 2);
  for (const { root } of [one, other]) await utimes(path.dirname(root), new Date(0), new Date(0));
  await Promise.all([open().remove("one"), open().remove("other")]);
  await open().hold(one);
  await open().prune(new Set(), new Date().getTime());
  expect([existsSync(one.root), existsSync(other.root)]).toEqual([true, false]);
});
