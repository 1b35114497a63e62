/**
 * Images on this machine: unpacked once, and used read-only by any number of sandboxes.
 *
 *  M1 An image's directory is complete from its first moment: it is filled under another name, and then renamed.
 *  M2 An image that a name or a sandbox uses is not removed.
 *
 *  M3 Any number of processes may add and remove names at the same time: each name has its own file.
 *
 *     <directory>/sha256-<digest>/root        its file system
 *     <directory>/sha256-<digest>/image.json  what it says about its programs
 *     <directory>/names/<hash of a name>      a name and its digest. Its time is that of the last use
 *     <directory>/.draft-*                    an import under way, or one that was killed
 */
import { createHash, randomUUID } from "node:crypto";
import { chmod, mkdir, readFile, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import * as Schema from "effect/Schema";
import { type Image, ImageFacts } from "./image.ts";
import { removeTree } from "../machine/disk/run-directory.ts";

const decodeFacts = Schema.decodeUnknownSync(Schema.fromJsonString(ImageFacts));
const decodeName = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ name: Schema.String, digest: ImageFacts.fields.digest })),
);
/** Of a former release: digests by name, in one file. */
const decodeNames = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)),
);
const FORMER_NAMES = "names.json";

const DRAFT = ".draft-";
/**
 * A younger entry may belong to an import, a push or a start under way, ms: an image gets its name last, and `hold` makes it young
 * again. An import takes at most half an hour, and a push one.
 */
const WORK_LASTS_MS = 2 * 60 * 60 * 1000;

/** A name and the image that it stands for. */
export interface NamedImage {
  readonly name: string;
  /** When it was named or last used, ms since the epoch. */
  readonly usedMs: number;
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
    await this.#adoptFormerNames();
    const named = await this.#readName(this.#fileOf(name));
    return named === null ? null : this.#read(named.digest);
  }

  /** All names, in their order. */
  async list(): Promise<NamedImage[]> {
    const names = (await this.#names()).toSorted((one, other) => one.name.localeCompare(other.name));
    const found = await Promise.all(
      names.map(async ({ name, digest, usedMs }) => ({ name, usedMs, image: await this.#read(digest) })),
    );
    return found.flatMap(({ image, ...named }) => (image === null ? [] : [{ ...named, image }]));
  }

  /** Notes that the image of this name is used now. */
  async noteUse(name: string, nowMs: number): Promise<void> {
    const now = new Date(nowMs);
    await utimes(this.#fileOf(name), now, now).catch(() => undefined);
  }

  /** Keeps an image that is about to be read, even if it loses its last name now. */
  async hold({ root }: Pick<Image, "root">): Promise<void> {
    const now = new Date();
    // An operator's import as root has made it: a service of another user cannot remove it either.
    await utimes(dirname(root), now, now).catch(() => undefined);
  }

  /**
   * Adds an image under a name. The name may have stood for another image before.
   * @param fill writes the file system into a directory, and says what the image is
   */
  async add(name: string, fill: (draft: string) => Promise<ImageFacts>): Promise<Image> {
    const draft = await this.openDraft();
    try {
      return await this.keep(draft, name, await fill(draft));
    } finally {
      await removeTree(draft);
    }
  }

  /** Makes a directory for a new image. The caller removes it, whether it was kept or not. */
  async openDraft(): Promise<string> {
    await this.#open();
    const draft = join(this.directory, `${DRAFT}${randomUUID()}`);
    await mkdir(draft, { mode: 0o755 });
    await chmod(draft, 0o755);
    return draft;
  }

  /** Adds the image that a draft has. */
  async keep(draft: string, name: string, facts: ImageFacts): Promise<Image> {
    await writeFile(join(draft, "image.json"), JSON.stringify(facts));
    // The name comes first: `prune` keeps what has a name.
    await this.#setName(name, facts.digest);
    if ((await this.#read(facts.digest)) === null) {
      await rename(draft, this.#placeOf(facts.digest)).catch(async (error: unknown) => {
        // Another process had the same image at the same time.
        if ((await this.#read(facts.digest)) === null) throw error;
      });
    }
    return { ...facts, root: join(this.#placeOf(facts.digest), "root") };
  }

  /** Forgets a name. Its image goes with the next `prune`. @returns false if no image has it */
  async remove(name: string): Promise<boolean> {
    await this.#adoptFormerNames();
    return rm(this.#fileOf(name)).then(
      () => true,
      () => false,
    );
  }

  /**
   * Removes images without a name, and what killed imports left. The directory must belong to one installation.
   * @param used digests of images that sandboxes use
   */
  async prune(used: ReadonlySet<string>, nowMs: number): Promise<void> {
    const keptNow = async (): Promise<ReadonlySet<string>> =>
      new Set(
        (await this.#names())
          .map(({ digest }) => digest)
          .concat(...used)
          .map((digest) => digest.replace(":", "-")),
      );
    const kept = await keptNow();
    const entries = await readdir(this.directory).catch(() => []);
    await Promise.all(
      entries.map(async (entry) => {
        const path = join(this.directory, entry);
        if (kept.has(entry) || !(entry.startsWith(DRAFT) || entry.startsWith("sha256-"))) return;
        if (nowMs - (await stat(path)).mtimeMs <= WORK_LASTS_MS) return;
        const removed = join(this.directory, `${DRAFT}${randomUUID()}`);
        await rename(path, removed);
        // Another process may have given it a name meanwhile.
        if ((await keptNow()).has(entry)) await rename(removed, path).catch(() => removeTree(removed));
        else await removeTree(removed);
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

  #fileOf(name: string): string {
    return join(this.directory, "names", createHash("sha256").update(name).digest("hex"));
  }

  async #readName(file: string): Promise<{ readonly name: string; readonly digest: string } | null> {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    return text === null ? null : decodeName(text);
  }

  async #names(): Promise<readonly { name: string; digest: string; usedMs: number }[]> {
    await this.#adoptFormerNames();
    const directory = join(this.directory, "names");
    const files = await readdir(directory).catch(() => []);
    const found = await Promise.all(
      files
        .filter((file) => !file.startsWith("."))
        .map(async (file) => {
          const path = join(directory, file);
          const [named, status] = await Promise.all([this.#readName(path), stat(path).catch(() => null)]);
          return named === null || status === null ? [] : [{ ...named, usedMs: status.mtimeMs }];
        }),
    );
    return found.flat();
  }

  async #setName(name: string, digest: string): Promise<void> {
    const file = this.#fileOf(name);
    const next = join(dirname(file), `.${randomUUID()}`);
    await mkdir(dirname(file), { recursive: true, mode: 0o755 });
    await writeFile(next, `${JSON.stringify({ name, digest })}\n`);
    await rename(next, file);
  }

  /** A former release kept all names in one file. */
  async #adoptFormerNames(): Promise<void> {
    const former = join(this.directory, FORMER_NAMES);
    const text = await readFile(former, "utf8").catch(() => null);
    if (text === null) return;
    for (const [name, digest] of Object.entries(decodeNames(text))) {
      // eslint-disable-next-line no-await-in-loop -- once, after an upgrade
      if ((await this.#readName(this.#fileOf(name))) === null) await this.#setName(name, digest);
    }
    await rm(former, { force: true });
  }
}

/** The first directory on the way that other users cannot enter. The sandboxes of a root service have other users. */
const firstClosed = async (directory: string): Promise<string | null> => {
  const parent = dirname(directory);
  const above = parent === directory ? null : await firstClosed(parent);
  if (above !== null) return above;
  return ((await stat(directory)).mode & 0o001) === 0 ? directory : null;
};
