/** Writes contents into the workspace, each in one step. No link is followed, and nothing is written outside. */
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { absolute, objectHash, parentPath } from "../content.ts";
import type { FrameSource } from "../frame-source.ts";

/** A content that is on its way, and what it must be. */
export interface Coming {
  readonly mode: string;
  readonly size: number;
  readonly object: string | null;
}

/** Why a content was not written. */
export class NotWritten extends Error {
  override readonly name = "NotWritten";
  readonly reason: string;
  constructor(reason: string) {
    super(reason);
    this.reason = reason;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "disk_full",
  EDQUOT: "disk_full",
  ENAMETOOLONG: "name_too_long",
  EACCES: "not_permitted",
  EPERM: "not_permitted",
  EROFS: "not_permitted",
  ENOTDIR: "in_the_way",
  EISDIR: "in_the_way",
  ENOTEMPTY: "in_the_way",
};

export const writeFault = (error: unknown): string => {
  if (error instanceof NotWritten) return error.reason;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return REASONS[code] ?? "not_written";
};

/** Whether there is anything at an absolute path. */
const isThere = (path: Buffer): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

export class Writer {
  readonly #root: string;
  /** Real directories, and no links. */
  readonly #directories = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Makes the directories above a path. @throws NotWritten if something else is in the way */
  makeParents(path: string): void {
    const parent = parentPath(path);
    if (parent === "" || this.#directories.has(parent)) return;
    this.makeParents(parent);
    const whole = absolute(this.#root, parent);
    const stats = lstatSync(whole, { throwIfNoEntry: false });
    if (stats === undefined) mkdirSync(whole);
    else if (!stats.isDirectory()) throw new NotWritten("in_the_way");
    this.#directories.add(parent);
  }

  /** Whether a path can be written in its place: a directory with content is not replaced. */
  isFree(path: string): boolean {
    const whole = absolute(this.#root, path);
    const stats = lstatSync(whole, { throwIfNoEntry: false });
    if (stats?.isDirectory() !== true) return true;
    try {
      rmdirSync(whole);
      return true;
    } catch {
      return false;
    }
  }

  isThere(path: string): boolean {
    return isThere(absolute(this.#root, path));
  }

  /** Takes one frame and makes a file or a link of it. @throws if that fails; the frame is read to its end anyway */
  async take(path: string, coming: Coming, frames: FrameSource): Promise<void> {
    const target = new Target(coming);
    let failure: unknown = null;
    const attempt = (work: () => void): void => {
      if (failure !== null) return;
      try {
        work();
      } catch (error) {
        failure = error;
      }
    };
    attempt(() => {
      this.makeParents(path);
      if (!this.isFree(path)) throw new NotWritten("in_the_way");
      target.open(this.#draftFor(path));
    });
    const end = await frames.read((chunk) => attempt(() => target.add(chunk)));
    if (end !== "whole") failure ??= new NotWritten(end);
    attempt(() => target.finish(absolute(this.#root, path)));
    if (failure === null) return;
    target.drop();
    throw failure;
  }

  #draftFor(path: string): Buffer {
    const parent = parentPath(path);
    const name = `.${randomUUID()}`;
    return absolute(this.#root, parent === "" ? name : `${parent}/${name}`);
  }

  /** Gives a file another name in its directory. */
  move(path: string, as: string): void {
    this.makeParents(path);
    renameSync(absolute(this.#root, path), absolute(this.#root, as));
  }

  /** Removes a file, and the directories that are empty then. @returns whether there was one */
  remove(path: string): boolean {
    const whole = absolute(this.#root, path);
    const stats = lstatSync(whole, { throwIfNoEntry: false });
    if (stats === undefined || stats.isDirectory()) return false;
    this.makeParents(path);
    unlinkSync(whole);
    this.#directories.clear();
    for (let parent = parentPath(path); parent !== ""; parent = parentPath(parent)) {
      try {
        rmdirSync(absolute(this.#root, parent));
      } catch {
        break;
      }
    }
    return true;
  }
}

/** A file or link beside its place, until it is whole. */
class Target {
  readonly #coming: Coming;
  readonly #hash;
  readonly #link: Buffer[] = [];
  #draft: Buffer | null = null;
  #file: number | null = null;

  constructor(coming: Coming) {
    this.#coming = coming;
    this.#hash = objectHash(coming.size);
  }

  open(draft: Buffer): void {
    this.#draft = draft;
    if (this.#coming.mode === "120000") return;
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    this.#file = openSync(draft, flags, 0o666);
  }

  add(chunk: Buffer): void {
    this.#hash.update(chunk);
    if (this.#file === null) this.#link.push(chunk);
    else for (let at = 0; at < chunk.length;) at += writeSync(this.#file, chunk, at);
  }

  finish(place: Buffer): void {
    const { mode, object } = this.#coming;
    if (this.#draft === null || this.#hash.digest("hex") !== object) throw new NotWritten("changed");
    if (this.#file === null) symlinkSync(Buffer.concat(this.#link), this.#draft);
    else {
      if (mode === "100755") chmodSync(this.#draft, 0o777 & ~process.umask());
      closeSync(this.#file);
      this.#file = null;
    }
    renameSync(this.#draft, place);
  }

  drop(): void {
    if (this.#file !== null) closeSync(this.#file);
    if (this.#draft !== null) rmSync(this.#draft, { force: true });
  }
}
