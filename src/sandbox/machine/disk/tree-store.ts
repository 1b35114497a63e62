/**
 * Trees of files on this machine, by their contents: made once, and used read-only by any number of sandboxes.
 *
 *  M1 A tree's directory is complete from its first moment: it is filled under another name, and then renamed.
 *  M2 A tree that a name or a sandbox uses is not removed.
 *  M3 Any number of processes may add and remove names at the same time: each name has its own file.
 *
 *     <directory>/sha256-<digest>/root    its files
 *     <directory>/sha256-<digest>/*.json  what it is
 *     <directory>/names/<hash of a name>  a name and its digest. Its time is that of the last use
 *     <directory>/.draft-*                a tree that is being made, or whose maker was killed
 */
import { createHash, randomUUID } from "node:crypto";
import { chmod, mkdir, readFile, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import * as Schema from "effect/Schema";
import { removeTree } from "./run-directory.ts";

/** Names a tree by its contents. */
export const Digest = Schema.String.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/));
const decodeName = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ name: Schema.String, digest: Digest })),
);

const DRAFT = ".draft-";
/**
 * A younger entry may belong to an import, a push or a start under way, ms: `hold` makes it young again. An import takes at most half
 * an hour, and a push one.
 */
const WORK_LASTS_MS = 2 * 60 * 60 * 1000;

interface Named {
  readonly digest: string;
}

/** A tree that is ready for sandboxes. */
export type Tree<Facts> = Facts & {
  /** The directory with its files. */
  readonly root: string;
};

/** A name and the tree that it stands for. */
export interface NamedTree<Facts> {
  readonly name: string;
  /** When it was named or last used, ms since the epoch. */
  readonly usedMs: number;
  readonly tree: Tree<Facts>;
}

/** How a kind of trees is kept. */
export interface TreeKind<Facts> {
  /** What people call it, such as `images`. */
  readonly what: string;
  /** The file that says what a tree is. */
  readonly factsFile: string;
  /** @throws if the text is not a record's */
  readonly decode: (text: string) => Facts;
}

export class TreeStore<Facts extends Named> {
  readonly directory: string;
  readonly #kind: TreeKind<Facts>;

  /** @param directory made when the first tree is added. Sandboxes' users must be able to enter it. */
  constructor(directory: string, kind: TreeKind<Facts>) {
    this.directory = directory;
    this.#kind = kind;
  }

  /** Called before any name is read. */
  protected async adopt(): Promise<void> {}

  /** The tree that a name stands for. Null if this machine has none. */
  async find(name: string): Promise<Tree<Facts> | null> {
    await this.adopt();
    const entry = await this.readName(this.namePath(name));
    return entry === null ? null : this.#read(entry.digest);
  }

  /** All names, in their order. */
  async list(): Promise<NamedTree<Facts>[]> {
    const names = (await this.#names()).toSorted((one, other) => one.name.localeCompare(other.name));
    const trees = await Promise.all(
      names.map(async ({ name, digest, usedMs }) => ({ name, usedMs, tree: await this.#read(digest) })),
    );
    return trees.flatMap(({ tree, ...named }) => (tree === null ? [] : [{ ...named, tree }]));
  }

  /** Notes that the tree of this name is used now. */
  async noteUse(name: string, nowMs: number): Promise<void> {
    const now = new Date(nowMs);
    await utimes(this.namePath(name), now, now).catch(() => undefined);
  }

  /** Keeps a tree that is about to be read, even if it loses its last name now. */
  async hold({ root }: Pick<Tree<Facts>, "root">): Promise<void> {
    const now = new Date();
    // An operator's import as root has made it: a service of another user cannot remove it either.
    await utimes(dirname(root), now, now).catch(() => undefined);
  }

  /**
   * Adds a tree under a name. The name may have stood for another one before.
   * @param fill writes the file system into a directory, and says what it is
   */
  async add(name: string, fill: (draft: string) => Promise<Facts>): Promise<Tree<Facts>> {
    const draft = await this.openDraft();
    try {
      return await this.keep(draft, name, await fill(draft));
    } finally {
      await removeTree(draft);
    }
  }

  /** Makes a directory for a new tree. The caller removes it, whether it was kept or not. */
  async openDraft(): Promise<string> {
    await this.#open();
    const draft = join(this.directory, `${DRAFT}${randomUUID()}`);
    await mkdir(draft, { mode: 0o755 });
    await chmod(draft, 0o755);
    return draft;
  }

  /** Adds the tree that a draft has. */
  async keep(draft: string, name: string, facts: Facts): Promise<Tree<Facts>> {
    await writeFile(join(draft, this.#kind.factsFile), JSON.stringify(facts));
    // The name comes first: `prune` keeps what has a name.
    await this.setName(name, facts.digest);
    if ((await this.#read(facts.digest)) === null) {
      await rename(draft, this.#treePath(facts.digest)).catch(async (error: unknown) => {
        // Another process had the same one at the same time.
        if ((await this.#read(facts.digest)) === null) throw error;
      });
    }
    return { ...facts, root: join(this.#treePath(facts.digest), "root") };
  }

  /** Forgets a name. Its tree goes with the next `prune`. @returns false if no tree has it */
  async remove(name: string): Promise<boolean> {
    await this.adopt();
    return rm(this.namePath(name)).then(
      () => true,
      () => false,
    );
  }

  /**
   * Removes trees without a name, and what killed makers left. The directory must belong to one installation.
   * @param usedTrees digests of trees that sandboxes use
   */
  async prune(usedTrees: ReadonlySet<string>, nowMs: number): Promise<void> {
    const keptNow = async (): Promise<ReadonlySet<string>> =>
      new Set(
        (await this.#names())
          .map(({ digest }) => digest)
          .concat(...usedTrees)
          .map((digest) => digest.replace(":", "-")),
      );
    const keptNames = await keptNow();
    const entries = await readdir(this.directory).catch(() => []);
    await Promise.all(
      entries.map(async (entry) => {
        const path = join(this.directory, entry);
        if (keptNames.has(entry) || !(entry.startsWith(DRAFT) || entry.startsWith("sha256-"))) return;
        if (nowMs - (await stat(path)).mtimeMs <= WORK_LASTS_MS) return;
        const trash = join(this.directory, `${DRAFT}${randomUUID()}`);
        await rename(path, trash);
        // Another process may have given it a name meanwhile.
        if ((await keptNow()).has(entry)) await rename(trash, path).catch(() => removeTree(trash));
        else await removeTree(trash);
      }),
    );
  }

  #treePath(digest: string): string {
    return join(this.directory, digest.replace(":", "-"));
  }

  async #open(): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o755 });
    if (process.geteuid?.() !== 0) return;
    const closedPath = await firstClosed(this.directory);
    if (closedPath === null) return;
    throw new Error(
      `sandboxes cannot enter ${closedPath}, so they could not use ${this.#kind.what} in ${this.directory}. Set PLATFORM_IMAGES_DIR to a directory that every user can enter, e.g. /var/lib/platform/images`,
    );
  }

  async #read(digest: string): Promise<Tree<Facts> | null> {
    const place = this.#treePath(digest);
    const text = await readFile(join(place, this.#kind.factsFile), "utf8").catch(() => null);
    return text === null ? null : { ...this.#kind.decode(text), root: join(place, "root") };
  }

  protected namePath(name: string): string {
    return join(this.directory, "names", createHash("sha256").update(name).digest("hex"));
  }

  protected async readName(file: string): Promise<{ readonly name: string; readonly digest: string } | null> {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    return text === null ? null : decodeName(text);
  }

  async #names(): Promise<readonly { name: string; digest: string; usedMs: number }[]> {
    await this.adopt();
    const directory = join(this.directory, "names");
    const files = await readdir(directory).catch(() => []);
    const entries = await Promise.all(
      files
        .filter((file) => !file.startsWith("."))
        .map(async (file) => {
          const path = join(directory, file);
          const [named, status] = await Promise.all([this.readName(path), stat(path).catch(() => null)]);
          return named === null || status === null ? [] : [{ ...named, usedMs: status.mtimeMs }];
        }),
    );
    return entries.flat();
  }

  protected async setName(name: string, digest: string): Promise<void> {
    const file = this.namePath(name);
    const next = join(dirname(file), `.${randomUUID()}`);
    await mkdir(dirname(file), { recursive: true, mode: 0o755 });
    await writeFile(next, `${JSON.stringify({ name, digest })}\n`);
    await rename(next, file);
  }
}

/** The first directory on the way that other users cannot enter. The sandboxes of a root service have other users. */
const firstClosed = async (directory: string): Promise<string | null> => {
  const parent = dirname(directory);
  const above = parent === directory ? null : await firstClosed(parent);
  if (above !== null) return above;
  return ((await stat(directory)).mode & 0o001) === 0 ? directory : null;
};
