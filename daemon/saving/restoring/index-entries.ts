/* oxlint-disable no-await-in-loop -- entries have an order */
/** Entries of the index that come back, with the objects that only they name. */
import { once } from "node:events";
import { createWriteStream, mkdirSync, renameSync, rmSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { createDeflate } from "node:zlib";
import type { ListedItem } from "../../../src/domain/save/listing.ts";
import { objectHash } from "../content.ts";
import type { FrameSource } from "../frame-source.ts";
import type { Left } from "../left.ts";
import type { Staged } from "./older.ts";
import type { Repository } from "../repository.ts";
import { writeFault, NotWritten } from "./write.ts";

const NOTHING = "0".repeat(40);

export class IndexEntries {
  readonly #repository: Repository;
  readonly #left: Left;
  readonly #entries: { readonly path: string; readonly lines: string }[] = [];
  readonly #cleared = new Set<string>();

  constructor(repository: Repository, left: Left) {
    this.#repository = repository;
    this.#left = left;
  }

  /** Takes an entry, and its object from the next frame. */
  async take(item: ListedItem, frames: FrameSource): Promise<void> {
    const { path, object } = item;
    try {
      if (object !== null) await this.#store({ ...item, object }, frames);
    } catch (error) {
      return this.#left.name(path, writeFault(error));
    }
    this.add(item);
  }

  /** Takes an entry whose object the repository has. */
  add({ path, mode, object, stage = 0 }: Staged): void {
    const none = `0 ${NOTHING}\t${path}\0`;
    if (object === null) return void this.#entries.push({ path, lines: none });
    // A path in conflict has no entry without a stage.
    const before = stage > 0 && !this.#cleared.has(path) ? none : "";
    this.#cleared.add(path);
    this.#entries.push({ path, lines: `${before}${mode} ${object} ${stage}\t${path}\0` });
  }

  /** Writes a loose object, as git has them. */
  async #store(
    { object, size }: { readonly object: string; readonly size: number },
    frames: FrameSource,
  ): Promise<void> {
    const directory = join(this.#repository.directory, "objects", object.slice(0, 2));
    const draft = join(directory, `tmp_obj_${randomUUID()}`);
    const hash = objectHash(size);
    let failure: unknown = null;
    const deflate = createDeflate();
    const fail = (error: unknown): void => void (failure ??= error);
    try {
      mkdirSync(directory, { recursive: true });
    } catch (error) {
      fail(error);
    }
    const file = createWriteStream(draft, { flags: "wx", mode: 0o444 });
    const completion = finished(file).catch(fail);
    file.on("error", () => deflate.destroy());
    deflate.on("error", fail).pipe(file);
    deflate.write(`blob ${size}\0`);
    const end = await frames.read(async (chunk) => {
      hash.update(chunk);
      if (failure === null && !deflate.write(chunk))
        await Promise.race([once(deflate, "drain").catch(fail), completion]);
    });
    deflate.end();
    await completion;
    if (end !== "whole") fail(new NotWritten(end));
    if (failure === null && hash.digest("hex") !== object) fail(new NotWritten("changed"));
    if (failure === null) return renameSync(draft, join(directory, object.slice(2)));
    rmSync(draft, { force: true });
    throw failure;
  }

  /** Puts the entries into the index. Removals come first: a directory may take the place of a file. */
  async apply(): Promise<void> {
    const entries = this.#entries.toSorted(
      (one, other) => Number(other.lines.startsWith("0 ")) - Number(one.lines.startsWith("0 ")),
    );
    const apply = (lines: string) => this.#repository.run(["update-index", "-z", "--index-info"], lines);
    if (entries.length === 0) return;
    const { code } = await apply(entries.map(({ lines }) => lines).join(""));
    if (code === 0) return;
    for (const { path, lines } of entries) {
      const { code: one } = await apply(lines);
      if (one !== 0) this.#left.name(path, "not_written");
    }
  }
}
