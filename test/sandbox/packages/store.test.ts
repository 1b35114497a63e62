/** The store of package files: its bounds, and what a kill leaves. */
import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ArtefactKey, ArtefactStore, PUBLIC, StoreFull } from "../../../src/sandbox/packages/store.ts";

const NOW = Date.UTC(2026, 0, 1);
let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "platform-package-store-"));
});
afterEach(() => rm(directory, { recursive: true }));

const open = (bytes = 1000, files = 100) => ArtefactStore.open(directory, { bytes, files });
const keyOf = (digit: string, scope = PUBLIC): ArtefactKey => ({
  scope,
  checksum: { algorithm: "sha256", hex: digit.repeat(64) },
});

const keep = async (store: ArtefactStore, key: ArtefactKey, content: string): Promise<void> => {
  const draft = await store.draft();
  await draft.write(Buffer.from(content));
  await store.keep(draft, key, NOW);
  await draft.handle.close();
};
const read = async (store: ArtefactStore, key: ArtefactKey, now = NOW): Promise<string | null> => {
  const found = await store.find(key, now);
  if (found === null) return null;
  const text = await found.handle.readFile("utf8");
  await found.handle.close();
  return text;
};

/** Sets when a public file was used last, in seconds since the epoch. */
const at = (name: string, second: number) =>
  utimes(join(directory, PUBLIC, `sha256-${name.repeat(64)}`), second, second);

describe("the store of package files", () => {
  it("finds a file in its own scope alone [E23]", async () => {
    const store = await open();
    const project = randomUUID();
    await keep(store, keyOf("a", project), "private");
    expect(await read(store, keyOf("a", project))).toBe("private");
    expect(await read(store, keyOf("a"))).toBeNull();
    expect(await read(store, keyOf("a", randomUUID()))).toBeNull();
  });

  it("removes what was unused for the longest time, also across a restart", async () => {
    const store = await open();
    for (const name of ["a", "b", "c"]) await keep(store, keyOf(name), name.repeat(300));
    expect(await read(store, keyOf("a"), NOW + 120_000)).not.toBeNull();
    await keep(store, keyOf("d"), "d".repeat(300));
    expect(await read(store, keyOf("b"))).toBeNull();
    expect(store.bytes).toBe(900);
    // The files on the disk were written just now. Only the use of `a` has been noted.
    await at("c", 1);
    await at("d", 2);
    await at("a", 3);
    const again = await open(700);
    expect(again.bytes).toBe(600);
    expect(await read(again, keyOf("c"))).toBeNull();
    expect(await read(again, keyOf("a"))).toBe("a".repeat(300));
  });

  it("counts drafts, and refuses one for which nothing can be removed", async () => {
    const store = await open();
    await keep(store, keyOf("a"), "a".repeat(600));
    const draft = await store.draft();
    await draft.write(Buffer.alloc(900));
    expect([store.bytes, await read(store, keyOf("a"))]).toEqual([900, null]);
    const second = await store.draft();
    await expect(second.write(Buffer.alloc(200))).rejects.toThrow(StoreFull);
    await Promise.all([store.discard(draft), store.discard(second)]);
    expect(store.bytes).toBe(0);
    await Promise.all([draft.handle.close(), second.handle.close()]);
  });

  it("has a bounded number of files", async () => {
    const store = await open(1000, 2);
    for (const name of ["a", "b", "c"]) await keep(store, keyOf(name), name);
    expect(await readdir(join(directory, PUBLIC))).toHaveLength(2);
    expect(await read(store, keyOf("a"))).toBeNull();
  });

  it("serves no part of a file that a kill left, and removes it [E24]", async () => {
    const killed = await open();
    const draft = await killed.draft();
    await draft.write(Buffer.from("half"));
    await draft.handle.close();
    const store = await open();
    expect([store.bytes, await readdir(join(directory, "drafts"))]).toEqual([0, []]);
  });

  it("serves no file that was cut on the disk [E24]", async () => {
    const store = await open();
    await keep(store, keyOf("a"), "whole");
    await truncate(join(directory, PUBLIC, `sha256-${"a".repeat(64)}`), 2);
    expect(await read(store, keyOf("a"))).toBeNull();
    expect(store.bytes).toBe(0);
  });

  it("lets a reader finish a file that is removed meanwhile", async () => {
    const store = await open();
    await keep(store, keyOf("a"), "a".repeat(600));
    const found = await store.find(keyOf("a"), NOW);
    await keep(store, keyOf("b"), "b".repeat(600));
    expect(await found?.handle.readFile("utf8")).toBe("a".repeat(600));
    await found?.handle.close();
  });

  it("ignores files that it did not write, and takes no name that leads elsewhere [E22]", async () => {
    await writeFile(join(directory, "note"), "mine");
    const store = await open();
    await expect(store.find(keyOf("../x"), NOW)).rejects.toThrow(/not the name/);
    await expect(store.find(keyOf("a", ".."), NOW)).rejects.toThrow(/not the name/);
    expect(await readdir(directory)).toContain("note");
  });
});
