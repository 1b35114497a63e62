/** The layer stores' own rules, without buildah. Only root can give a store to its block of user ids. */
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  BLOCK_UIDS,
  firstBlockUid,
  type LayerStore,
  LayerStores,
} from "../../src/builder/buildah/layer-stores.ts";

const isRoot = process.geteuid?.() === 0;

describe.skipIf(!isRoot)(`layer stores ${isRoot ? "" : "need root"}`, () => {
  let directory = "";
  let stores: LayerStores;
  const open = (): Promise<LayerStores> =>
    LayerStores.open(directory, "installation", { storeBytes: 100, storesBytes: 150 });
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "stores-"));
    stores = await open();
  });
  afterEach(() => rm(directory, { recursive: true }));

  const use = async (key: string, bytes: number, atMs: number): Promise<LayerStore> => {
    const store = await stores.take(key);
    await writeFile(join(store.layers, "layer"), key);
    await store.release({ bytes, files: 1, atMs });
    return store;
  };

  it("have a block of user ids each, and keep it over a restart", async () => {
    const [one, two] = [await use("one", 10, 1), await use("two", 10, 2)];
    expect(Math.abs(one.uid - two.uid)).toBe(BLOCK_UIDS);
    expect((await stat(one.layers)).uid).toBe(one.uid);
    stores = await open();
    const again = await stores.take("one");
    expect([again.uid, again.bytes, again.files]).toEqual([one.uid, 10, 1]);
    expect(existsSync(join(again.layers, "layer"))).toBe(true);
  });

  it("serve one build at a time", async () => {
    const first = await stores.take("one");
    const order: string[] = [];
    const second = stores.take("one").then(async (store) => {
      order.push("second");
      await store.leave();
    });
    await (await stores.take("other")).leave();
    order.push("released");
    await first.release({ bytes: 1, files: 1, atMs: 1 });
    await second;
    expect(order).toEqual(["released", "second"]);
  });

  it("are removed if they are too large, or if their build was killed", async () => {
    const large = await use("large", 101, 1);
    const killed = await stores.take("killed");
    await killed.release(null);
    expect([large, killed].some(({ layers }) => existsSync(dirname(layers)))).toBe(false);
    expect(await readdir(join(directory, "stores"))).toEqual([]);
  });

  it("are removed by the next service if a killed one had them in use", async () => {
    const used = await stores.take("used");
    stores = await open();
    expect(existsSync(used.layers)).toBe(false);
  });

  it("go, the one that was unused for the longest time first, until they are within their bound", async () => {
    const old = await use("old", 60, 1);
    const recent = await use("recent", 60, 2);
    await use("old", 60, 3);
    const newest = await use("newest", 60, 4);
    expect([old, recent, newest].map(({ layers }) => existsSync(layers))).toEqual([true, false, true]);
    // Its block is free again.
    expect((await stores.take("next")).uid).toBe(recent.uid);
  });
});

describe("a block of user ids", () => {
  it("is within a range of its own, above those of sandboxes", () => {
    for (const id of ["a", "b", "c"]) {
      expect(firstBlockUid(id)).toBeGreaterThanOrEqual(700_000_000);
      expect(firstBlockUid(id) + 64 * BLOCK_UIDS).toBeLessThan(2 ** 31);
    }
  });
});
