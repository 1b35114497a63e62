/**
 * Layer stores: buildah's storage on disk, one for each key, i.e. for each project.
 *
 *     <directory>/stores/<hash of the key>/
 *         record.json   the store's block of user ids, its size, its last use
 *         busy          there while a build uses the store
 *         layers/       buildah's storage; belongs to the block
 *
 *  Y1 One build at a time uses a store.
 *  Y2 A store belongs to one block of host uids, and a block to one store, until the store is removed.
 *  Y3 A store whose build was killed is removed before its next build: buildah may have been in the middle of a write.
 *  Y4 After each build, a store that is too large is removed, and then the stores that were unused for the longest time
 *     until all of them are within their bound.
 */
import { createHash } from "node:crypto";
import { chmod, chown, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as Schema from "effect/Schema";
import { removeTree } from "../../sandbox/machine/disk/run-directory.ts";

/** User ids of one build, from 0 on in its user namespace. Images use all of 16 bits. */
export const BLOCK_UIDS = 65_536;
/** Above the uids of local sandboxes (sandbox/machine/sandboxes.ts). Each installation has a range of its own. */
const UID_FIRST = 700_000_000;
const BLOCKS = 64;
const RANGES = 345;

/** The first uid of an installation's blocks. */
export const firstBlockUid = (installationId: string): number => {
  const digest = createHash("sha256").update(installationId).digest();
  return UID_FIRST + (digest.readUInt32BE() % RANGES) * BLOCKS * BLOCK_UIDS;
};

const StoreRecord = Schema.Struct({
  version: Schema.Literal(1),
  /** The block's number, from 0 on. */
  block: Schema.Int,
  bytes: Schema.Int,
  files: Schema.Int,
  usedAtMs: Schema.Int,
});
type StoreRecord = typeof StoreRecord.Type;
const decodeRecord = Schema.decodeUnknownSync(Schema.fromJsonString(StoreRecord));

export interface StoreBounds {
  /** The largest store that is kept after a build, in bytes. */
  readonly storeBytes: number;
  /** The size of all stores together that are kept. */
  readonly storesBytes: number;
}

/** A store for the duration of a build. */
export interface LayerStore {
  readonly layers: string;
  /** The first host uid of its block. */
  readonly uid: number;
  /** Its size before the build. */
  readonly bytes: number;
  readonly files: number;
  /** Gives it back unused. */
  readonly leave: () => Promise<void>;
  /**
   * Gives it back. @param after its size after a build that ended by itself; null removes the store
   */
  readonly release: (
    after: { readonly bytes: number; readonly files: number; readonly atMs: number } | null,
  ) => Promise<void>;
}

const storeName = (key: string): string => createHash("sha256").update(key).digest("hex").slice(0, 32);

/**
 * The store of a key, below the directory of all stores. It may be removed while no build uses it: the stores count it until they
 * need its block or its room, or until the next start.
 */
export const layerStorePlace = (directory: string, key: string): string =>
  join(directory, "stores", storeName(key));

export class LayerStores {
  readonly #root: string;
  readonly #firstUid: number;
  readonly #bounds: StoreBounds;
  readonly #records = new Map<string, StoreRecord>();
  readonly #inUse = new Set<string>();
  readonly #tails = new Map<string, Promise<void>>();

  private constructor(root: string, firstUid: number, bounds: StoreBounds) {
    this.#root = root;
    this.#firstUid = firstUid;
    this.#bounds = bounds;
  }

  /** Opens the stores below a directory. One service owns the directory. */
  static async open(directory: string, installationId: string, bounds: StoreBounds): Promise<LayerStores> {
    const root = join(directory, "stores");
    await mkdir(root, { recursive: true, mode: 0o700 });
    const stores = new LayerStores(root, firstBlockUid(installationId), bounds);
    for (const name of await readdir(root)) {
      // eslint-disable-next-line no-await-in-loop -- once, at the start
      await stores.#adopt(name);
    }
    return stores;
  }

  async #adopt(name: string): Promise<void> {
    const place = join(this.#root, name);
    try {
      const record = decodeRecord(await readFile(join(place, "record.json"), "utf8"));
      if (existsSync(join(place, "busy"))) throw new Error("a build was killed");
      this.#records.set(name, record);
    } catch {
      await removeTree(place);
    }
  }

  /** Waits until no other build uses the store of this key, and creates the store if it does not exist. */
  async take(key: string): Promise<LayerStore> {
    const name = storeName(key);
    const before = this.#tails.get(name) ?? Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const tail = before.then(() => promise);
    this.#tails.set(name, tail);
    const leave = (): void => {
      this.#inUse.delete(name);
      if (this.#tails.get(name) === tail) this.#tails.delete(name);
      resolve(undefined);
    };
    await before;
    this.#inUse.add(name);
    try {
      return await this.#openStore(name, leave);
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #openStore(name: string, leave: () => void): Promise<LayerStore> {
    const place = join(this.#root, name);
    const record = this.#records.get(name) ?? (await this.#create(name));
    await writeFile(join(place, "busy"), "");
    return {
      layers: join(place, "layers"),
      uid: this.#firstUid + record.block * BLOCK_UIDS,
      bytes: record.bytes,
      files: record.files,
      leave: async () => {
        await rm(join(place, "busy"), { force: true });
        leave();
      },
      release: async (after) => {
        try {
          if (after === null || after.bytes > this.#bounds.storeBytes) await this.#remove(name);
          else {
            const { bytes, files, atMs } = after;
            await this.#write(name, { ...record, bytes, files, usedAtMs: atMs });
            await rm(join(place, "busy"));
          }
          await this.#shrink();
        } finally {
          leave();
        }
      },
    };
  }

  async #create(name: string): Promise<StoreRecord> {
    const place = join(this.#root, name);
    const block = await this.#freeBlock();
    const record: StoreRecord = { version: 1, block, bytes: 0, files: 0, usedAtMs: 0 };
    // Kept at once, so that no other store takes the block meanwhile (Y2).
    this.#records.set(name, record);
    const uid = this.#firstUid + block * BLOCK_UIDS;
    await removeTree(place);
    await mkdir(join(place, "layers"), { recursive: true, mode: 0o700 });
    await chmod(place, 0o700);
    await chown(join(place, "layers"), uid, uid);
    await this.#write(name, record);
    return record;
  }

  async #write(name: string, record: StoreRecord): Promise<void> {
    const path = join(this.#root, name, "record.json");
    await writeFile(`${path}.next`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${path}.next`, path);
    this.#records.set(name, record);
  }

  async #freeBlock(): Promise<number> {
    const takenBlocks = new Set([...this.#records.values()].map(({ block }) => block));
    for (let block = 0; block < BLOCKS; block += 1) if (!takenBlocks.has(block)) return block;
    const oldest = this.#oldestUnused();
    if (oldest === null) throw new Error(`all ${BLOCKS} layer stores are in use`);
    const { block } = oldest[1];
    await this.#remove(oldest[0]);
    return block;
  }

  #oldestUnused(): [string, StoreRecord] | null {
    const unusedStores = [...this.#records].filter(([name]) => !this.#inUse.has(name));
    return unusedStores.toSorted(([, a], [, b]) => a.usedAtMs - b.usedAtMs)[0] ?? null;
  }

  async #shrink(): Promise<void> {
    const total = [...this.#records.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    const oldest = total > this.#bounds.storesBytes ? this.#oldestUnused() : null;
    if (oldest === null) return;
    await this.#remove(oldest[0]);
    await this.#shrink();
  }

  /** The store's block is free only after its files are gone (Y2). */
  async #remove(name: string): Promise<void> {
    await removeTree(join(this.#root, name));
    this.#records.delete(name);
  }
}
