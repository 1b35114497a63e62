/**
 * Package files on this node's disk, by the checksum of their content.
 *
 *  A1 A file has its final name only if its content has been written in full, has the name's checksum, and is on the disk. A kill leaves
 *     drafts, which the next start removes.
 *  A2 Files and drafts together never use more than the store's bytes. Room is made before it is used: the file that was unused for
 *     the longest time goes first.
 *  A3 A file belongs to a scope: a project's, or the public one. No scope finds another one's files.
 *  A4 A file that is being read can be removed: its reader has it open.
 */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, unlink, utimes } from "node:fs/promises";
import path from "node:path";
import type { Checksum } from "../../domain/environment/packages.ts";

export interface StoreLimits {
  /** On the disk, of all files together. */
  readonly bytes: number;
  /** How many files. Their names are in memory, and a start looks at each. */
  readonly files: number;
}

/** Files that every project may get. */
export const PUBLIC = "public";

export interface ArtefactKey {
  /** `PUBLIC`, or the id of the project whose credentials opened the file. */
  readonly scope: string;
  readonly checksum: Checksum;
}

export interface Artefact {
  /** The caller closes it. */
  readonly handle: FileHandle;
  readonly bytes: number;
}

/** There is no room for a file, or the disk refuses it. Not a fault of the registry. */
export class StoreFull extends Error {}

const notWritten = (cause: unknown): StoreFull =>
  new StoreFull("the package cache cannot be written", { cause });

const SCOPE = /^(?:public|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const NAME = /^sha(?:256|512)-[0-9a-f]+$/;
/** The use of a file is noted on the disk if the last note is this old. */
const NOTE_USE_MS = 60_000;

const artefactName = ({ scope, checksum }: ArtefactKey): string => {
  const name = `${checksum.algorithm}-${checksum.hex}`;
  if (!SCOPE.test(scope) || !NAME.test(name)) throw new Error("not the name of a package file");
  return path.join(scope, name);
};

/**
 * The files of a project, below the directory of a store. They may be removed at any time: the store counts them until it needs their
 * room, or until the next start.
 */
export const projectFiles = (directory: string, projectId: string): string => path.join(directory, projectId);

/** A file that is being written. */
export class Draft {
  readonly handle: FileHandle;
  readonly file: string;
  readonly #grow: (bytes: number) => Promise<void>;
  /** What it takes of the store, in bytes. */
  taken = 0;
  /** Its length so far, in bytes. */
  bytes = 0;

  constructor(handle: FileHandle, file: string, grow: (bytes: number) => Promise<void>) {
    this.handle = handle;
    this.file = file;
    this.#grow = grow;
  }

  /** Appends. @throws StoreFull */
  async write(chunk: Uint8Array): Promise<void> {
    await this.#grow(chunk.length);
    this.taken += chunk.length;
    try {
      for (let offset = 0; offset < chunk.length;) {
        // oxlint-disable-next-line no-await-in-loop -- a write may be a part of what was asked
        offset += (await this.handle.write(chunk, offset, chunk.length - offset, this.bytes + offset))
          .bytesWritten;
      }
      this.bytes += chunk.length;
    } catch (error) {
      throw notWritten(error);
    }
  }
}

interface Known {
  readonly bytes: number;
  notedMs: number;
}

export class ArtefactStore {
  readonly #directory: string;
  readonly #limits: StoreLimits;
  /** By name, the one that was unused for the longest time first. */
  readonly #known: Map<string, Known>;
  #used: number;

  private constructor(directory: string, limits: StoreLimits, artefacts: Map<string, Known>) {
    this.#directory = directory;
    this.#limits = limits;
    this.#known = artefacts;
    this.#used = [...artefacts.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /**
   * Opens the store in a directory of its own, which one process uses at a time. Removes drafts, and what is above the limits (A1, A2).
   */
  static async open(directory: string, limits: StoreLimits): Promise<ArtefactStore> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await rm(path.join(directory, "drafts"), { recursive: true, force: true });
    await mkdir(path.join(directory, "drafts"), { mode: 0o700 });
    const store = new ArtefactStore(directory, limits, await knownIn(directory));
    await store.#makeRoom(0);
    return store;
  }

  /** What files and drafts use, in bytes. */
  get bytes(): number {
    return this.#used;
  }

  /** Opens a file, or returns null. */
  async find(key: ArtefactKey, nowMs: number): Promise<Artefact | null> {
    const name = artefactName(key);
    const entry = this.#known.get(name);
    if (entry === undefined) return null;
    const handle = await open(this.#at(name), constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => null);
    const isWhole = handle !== null && (await handle.stat()).size === entry.bytes;
    if (!isWhole) {
      // Another program removed or cut it.
      await handle?.close();
      await this.#remove(name);
      return null;
    }
    // Removed meanwhile (A4): it can be read, and stays forgotten.
    if (this.#known.delete(name)) this.#known.set(name, entry);
    if (nowMs - entry.notedMs > NOTE_USE_MS) {
      entry.notedMs = nowMs;
      await utimes(this.#at(name), nowMs / 1000, nowMs / 1000).catch(() => undefined);
    }
    return { handle, bytes: entry.bytes };
  }

  /** Begins a file. The caller ends it with `keep` or `discard`, and then closes its handle. @throws StoreFull */
  async draft(): Promise<Draft> {
    const file = this.#at(path.join("drafts", randomUUID()));
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
    const handle = await open(file, flags, 0o600).catch((error: unknown) => {
      throw notWritten(error);
    });
    return new Draft(handle, file, (bytes) => this.#makeRoom(bytes));
  }

  /** Gives a draft its final name. The caller has compared its checksum. @throws StoreFull */
  async keep(draft: Draft, key: ArtefactKey, nowMs: number): Promise<void> {
    const name = artefactName(key);
    try {
      await draft.handle.sync();
      await mkdir(path.dirname(this.#at(name)), { recursive: true, mode: 0o700 });
      await rename(draft.file, this.#at(name));
    } catch (error) {
      throw notWritten(error);
    }
    // The same content from another address: the file has replaced it.
    this.#used -= this.#known.get(name)?.bytes ?? 0;
    this.#known.delete(name);
    this.#known.set(name, { bytes: draft.bytes, notedMs: nowMs });
    await this.#makeRoom(0);
  }

  /** Removes a draft. */
  async discard(draft: Draft): Promise<void> {
    this.#used -= draft.taken;
    await unlink(draft.file).catch(() => undefined);
  }

  #at(name: string): string {
    return path.join(this.#directory, name);
  }

  /** Takes the bytes for a draft, after it has removed as many files as that needs (A2). @throws StoreFull */
  async #makeRoom(bytes: number): Promise<void> {
    const { files, bytes: most } = this.#limits;
    const removals: string[] = [];
    for (const [name, known] of this.#known) {
      if (this.#used + bytes <= most && this.#known.size <= files) break;
      this.#known.delete(name);
      this.#used -= known.bytes;
      removals.push(name);
    }
    if (this.#used + bytes > most) throw new StoreFull("the package cache is full of files in progress");
    this.#used += bytes;
    await Promise.all(removals.map((name) => unlink(this.#at(name)).catch(() => undefined)));
  }

  async #remove(name: string): Promise<void> {
    const entry = this.#known.get(name);
    if (entry === undefined) return;
    this.#known.delete(name);
    this.#used -= entry.bytes;
    await unlink(this.#at(name)).catch(() => undefined);
  }
}

/** The files of all scopes, the one that was unused for the longest time first. */
const knownIn = async (directory: string): Promise<Map<string, Known>> => {
  const scopes = (await readdir(directory)).filter((name) => SCOPE.test(name));
  const artefacts: { readonly name: string; readonly bytes: number; readonly notedMs: number }[] = [];
  for (const scope of scopes) {
    // oxlint-disable-next-line no-await-in-loop -- one directory at a time bounds the open files
    for (const file of await readdir(path.join(directory, scope))) {
      if (!NAME.test(file)) continue;
      const name = path.join(scope, file);
      // oxlint-disable-next-line no-await-in-loop -- as above
      const { size, mtimeMs } = await stat(path.join(directory, name));
      artefacts.push({ name, bytes: size, notedMs: mtimeMs });
    }
  }
  artefacts.sort((one, other) => one.notedMs - other.notedMs);
  return new Map(artefacts.map(({ name, bytes, notedMs }) => [name, { bytes, notedMs }]));
};
