/**
 * Images on this machine: unpacked once, and used read-only by any number of sandboxes.
 *
 *  M1 An image's directory is complete from its first moment: it is filled under another name, and then renamed.
 *  M2 An image that a name or a sandbox uses is not removed.
 *
 *     <directory>/sha256-<digest>/root        its file system
 *     <directory>/sha256-<digest>/image.json  what it says about its programs
 *     <directory>/names.json                  digests by name
 *     <directory>/.draft-*                    an import under way, or one that was killed
 */
import { randomUUID } from "node:crypto";
import { chmod, mkdir, readFile, readdir, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import * as Schema from "effect/Schema";
import { type Image, ImageFacts } from "./image.ts";
import { removeTree } from "../local/run-directory.ts";

const decodeFacts = Schema.decodeUnknownSync(Schema.fromJsonString(ImageFacts));
const decodeNames = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)),
);

const DRAFT = ".draft-";
/**
 * A younger entry may belong to an import under way, ms: its image gets the name last. An import takes at most half an
 * hour.
 */
const IMPORT_LASTS_MS = 2 * 60 * 60 * 1000;

/** A name and the image that it stands for. */
export interface NamedImage {
  readonly name: string;
  readonly image: Image;
}

export class ImageStore {
  readonly directory: string;

  /** @param directory made when the first image is added. Sandboxes' users must be able to enter it. */
  constructor(directory: string) {
    this.directory = directory;
  }

  /** The image that a name stands for. Null if this machine has none. */
  async find(name: string): Promise<Image | null> {
    const digest = (await this.#names())[name];
    return digest === undefined ? null : this.#read(digest);
  }

  /** All names, in their order. */
  async list(): Promise<NamedImage[]> {
    const names = Object.entries(await this.#names()).toSorted(([one], [other]) => one.localeCompare(other));
    const found = await Promise.all(
      names.map(async ([name, digest]) => ({ name, image: await this.#read(digest) })),
    );
    return found.flatMap(({ name, image }) => (image === null ? [] : [{ name, image }]));
  }

  /**
   * Adds an image under a name. The name may have stood for another image before.
   * @param fill writes the file system into a directory, and says what the image is
   */
  async add(name: string, fill: (draft: string) => Promise<ImageFacts>): Promise<Image> {
    await this.#open();
    const draft = join(this.directory, `${DRAFT}${randomUUID()}`);
    try {
      await mkdir(draft, { mode: 0o755 });
      await chmod(draft, 0o755);
      const facts = await fill(draft);
      await writeFile(join(draft, "image.json"), JSON.stringify(facts));
      if ((await this.#read(facts.digest)) === null) await rename(draft, this.#placeOf(facts.digest));
      await this.#setNames({ ...(await this.#names()), [name]: facts.digest });
      return { ...facts, root: join(this.#placeOf(facts.digest), "root") };
    } finally {
      await removeTree(draft);
    }
  }

  /** Forgets a name. Its image goes with the next `prune`. @returns false if no image has it */
  async remove(name: string): Promise<boolean> {
    const { [name]: removed, ...others } = await this.#names();
    if (removed === undefined) return false;
    await this.#setNames(others);
    return true;
  }

  /**
   * Removes images without a name, and what killed imports left. The directory must belong to one installation.
   * @param used digests of images that sandboxes use
   */
  async prune(used: ReadonlySet<string>, nowMs: number): Promise<void> {
    const kept = new Set(
      Object.values(await this.#names())
        .concat(...used)
        .map((digest) => digest.replace(":", "-")),
    );
    const entries = await readdir(this.directory).catch(() => []);
    await Promise.all(
      entries.map(async (entry) => {
        const path = join(this.directory, entry);
        if (kept.has(entry) || !(entry.startsWith(DRAFT) || entry.startsWith("sha256-"))) return;
        if (nowMs - (await stat(path)).mtimeMs > IMPORT_LASTS_MS) await removeTree(path);
      }),
    );
  }

  #placeOf(digest: string): string {
    return join(this.directory, digest.replace(":", "-"));
  }

  async #open(): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o755 });
    if (process.geteuid?.() !== 0) return;
    const closed = await firstClosed(this.directory);
    if (closed === null) return;
    throw new Error(
      `sandboxes cannot enter ${closed}, so they could not use images in ${this.directory}. Set PLATFORM_IMAGES_DIR to a directory that every user can enter, e.g. /var/lib/platform/images`,
    );
  }

  async #read(digest: string): Promise<Image | null> {
    const place = this.#placeOf(digest);
    const text = await readFile(join(place, "image.json"), "utf8").catch(() => null);
    return text === null ? null : { ...decodeFacts(text), root: join(place, "root") };
  }

  async #names(): Promise<Readonly<Record<string, string>>> {
    const text = await readFile(join(this.directory, "names.json"), "utf8").catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return null;
        throw error;
      },
    );
    return text === null ? {} : decodeNames(text);
  }

  async #setNames(names: Readonly<Record<string, string>>): Promise<void> {
    const next = join(this.directory, `names.json.${process.pid}`);
    await writeFile(next, `${JSON.stringify(names, null, 2)}\n`);
    await rename(next, join(this.directory, "names.json"));
  }
}

/** The first directory on the way that other users cannot enter. The sandboxes of a root service have other users. */
const firstClosed = async (directory: string): Promise<string | null> => {
  const parent = dirname(directory);
  const above = parent === directory ? null : await firstClosed(parent);
  if (above !== null) return above;
  return ((await stat(directory)).mode & 0o001) === 0 ? directory : null;
};
