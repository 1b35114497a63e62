/**
 * Writes the files of a commit into a directory, as the context of a build. Neither the files nor
 * the server that they come from are trusted: a repository can be one that git itself would refuse.
 *
 *  K1 Nothing is written outside the directory: no link of the context is followed, and nothing is overwritten.
 *  K2 Equal files make equal directories. Every entry has the same time, because git has none, and buildah's cache
 *     would otherwise miss.
 */
import { lutimes, mkdir, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { thrownText } from "../../ground/thrown.ts";
import { isTreePath, type TreeFile } from "../../git/port.ts";
import { BuildError } from "../port.ts";
import type { SiteRequest } from "./port.ts";

/** Of every file. Some programs refuse dates before 1980. */
const WRITTEN_AT = new Date("2000-01-01T00:00:00Z");

export interface ContextLimits {
  /** The contents of all files together. */
  readonly bytes: number;
  /** Files, links and directories. */
  readonly files: number;
}

const tooLarge = (what: "disk" | "files" | "path", limit: number) =>
  new BuildError({ failure: { code: "too_large", what, limit } });
const unreadable = (message: string) =>
  new BuildError({ failure: { code: "repository_unavailable", message } });

/** The longest path on Linux, in bytes. */
const PATH_MAX = 4096;

/** One context while it is written. */
class ContextDirectory {
  readonly #root: string;
  readonly #limits: ContextLimits;
  /** Those that this object made. Only they are known to be directories, and not links. */
  readonly #directories = new Set<string>([""]);
  #bytes = 0;
  #files = 0;

  constructor(root: string, limits: ContextLimits) {
    this.#root = root;
    this.#limits = limits;
  }

  async write(file: TreeFile): Promise<void> {
    if (!isTreePath(file.path)) throw unreadable(`git gave the path ${JSON.stringify(file.path)}`);
    try {
      await this.#write(file);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENAMETOOLONG") throw tooLarge("path", PATH_MAX);
      if (code === "EEXIST" || code === "ENOTDIR")
        throw unreadable(`the commit has two entries for ${file.path}`);
      throw error;
    }
  }

  async #write({ path, kind, content }: TreeFile): Promise<void> {
    const parts = path.split("/");
    for (let depth = 1; depth < parts.length; depth += 1) {
      // eslint-disable-next-line no-await-in-loop -- each is the parent of the next
      await this.#enter(parts.slice(0, depth).join("/"));
    }
    this.#count(content.length);
    const place = join(this.#root, path);
    if (kind === "link") {
      await symlink(Buffer.from(content), place);
      await lutimes(place, WRITTEN_AT, WRITTEN_AT);
      return;
    }
    // `wx` follows no link at the end of the path.
    await writeFile(place, content, { flag: "wx", mode: kind === "executable" ? 0o755 : 0o644 });
    await utimes(place, WRITTEN_AT, WRITTEN_AT);
  }

  async #enter(directory: string): Promise<void> {
    if (this.#directories.has(directory)) return;
    this.#count(0);
    await mkdir(join(this.#root, directory), { mode: 0o755 });
    this.#directories.add(directory);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#files += 1;
    if (this.#bytes > this.#limits.bytes) throw tooLarge("disk", this.#limits.bytes);
    if (this.#files > this.#limits.files) throw tooLarge("files", this.#limits.files);
  }

  /** Sets the time of all directories, the deepest first. */
  async finish(): Promise<void> {
    for (const directory of [...this.#directories].toReversed()) {
      // eslint-disable-next-line no-await-in-loop -- a parent's time comes last
      await utimes(join(this.#root, directory), WRITTEN_AT, WRITTEN_AT);
    }
  }
}

const attempt = (work: () => Promise<void>): Effect.Effect<void, BuildError> =>
  Effect.tryPromise({
    try: work,
    catch: (error) =>
      error instanceof BuildError
        ? error
        : new BuildError({
            failure: {
              code: "builder_unavailable",
              problem: `the files cannot be written: ${thrownText(error)}`,
            },
          }),
  });

/**
 * Writes the files into an empty directory, page by page.
 * @throws BuildError `too_large`, `repository_unavailable`, or `builder_unavailable` if the disk fails
 */
export const writeContext = Effect.fnUntraced(function* (
  directory: string,
  files: SiteRequest["files"],
  limits: ContextLimits,
) {
  const context = new ContextDirectory(directory, limits);
  let after: string | null = null;
  do {
    const page: Effect.Success<ReturnType<SiteRequest["files"]>> = yield* files(after);
    yield* attempt(async () => {
      for (const file of page.entries) {
        // eslint-disable-next-line no-await-in-loop -- a directory is made before its files
        await context.write(file);
      }
    });
    after = page.next;
  } while (after !== null);
  yield* attempt(() => context.finish());
});
