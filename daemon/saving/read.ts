/* oxlint-disable no-await-in-loop -- contents have an order */
/** Sends contents of the workspace as frames, in constant memory. Each is checked against the digest of the listing. */
import { constants, type BigIntStats } from "node:fs";
import { open, readlink } from "node:fs/promises";
import { CHUNK_BYTES, type FrameEnd } from "../../src/domain/save/frames.ts";
import type { ReadRequest } from "../../src/domain/save/listing.ts";
import { isHistoryPath } from "../../src/domain/runtimes/history.ts";
import type { HistoryPlace, ReadCommand } from "./command.ts";
import { objectHash, fileStamp, Tree, whyUnread } from "./content.ts";
import { isStatePath } from "./listing/operation.ts";
import { writeChunk, writeEnd } from "./output.ts";
import { Pace } from "./pace.ts";
import { existing } from "./listing/queries.ts";
import { gitDirectory, Repository, type GitProcess } from "./repository.ts";
import { BlobReader } from "./listing/blobs.ts";
import { join } from "node:path";

type Item = ReadRequest["items"][number];
type Commits = NonNullable<ReadRequest["commits"]>;

export const readWorkspace = async ({ workspace, history, request }: ReadCommand): Promise<void> => {
  const reader = new Reader(workspace, history, new Pace(request.share));
  try {
    for (const item of request.items) await writeEnd(await reader.item(item));
    if (request.commits !== undefined) await writeEnd(await reader.commits(request.commits));
  } finally {
    reader.close();
  }
};

class Reader {
  readonly #workspace: string;
  readonly #pace: Pace;
  readonly #tree: Tree;
  readonly #directory: string | null;
  #blobs: BlobReader | null = null;

  readonly #history: HistoryPlace | undefined;

  constructor(workspace: string, history: HistoryPlace | undefined, pace: Pace) {
    this.#workspace = workspace;
    this.#history = history;
    this.#pace = pace;
    this.#tree = new Tree(workspace);
    this.#directory = gitDirectory(workspace);
  }

  async item({ kind, path, object }: Item): Promise<FrameEnd> {
    await this.#pace.rest();
    if (kind === "file") return this.#file(this.#tree, path, object);
    if (kind === "history") {
      const { home, files, id = null } = this.#history ?? {};
      const isIts =
        home !== undefined && files !== undefined && id !== null && isHistoryPath(path, files, id);
      return isIts ? this.#file(new Tree(home), path, object) : "missing";
    }
    if (this.#directory === null) return "missing";
    if (kind === "state")
      return isStatePath(path) ? this.#file(new Tree(this.#directory), path, object) : "missing";
    this.#blobs ??= new BlobReader(new Repository(this.#workspace, this.#directory));
    const end = await this.#blobs.send(object, (chunk) => this.#chunk(chunk));
    // A broken object ends the process. The next one needs another.
    if (end === "failed") this.close();
    return end;
  }

  async #file(tree: Tree, path: string, object: string): Promise<FrameEnd> {
    const there = tree.look(path);
    if (typeof there === "string") return there === "missing" || there === "unreadable" ? there : "changed";
    const { bytes, stats } = there;
    const hash = objectHash(Number(stats.size));
    try {
      if (stats.isSymbolicLink()) {
        const target = await readlink(bytes, "buffer");
        if (objectHash(target.length).update(target).digest("hex") !== object) return "changed";
        await this.#chunk(target);
        return "whole";
      }
      const isWhole = await this.#send({ bytes, stats }, async (chunk) => {
        hash.update(chunk);
        await this.#chunk(chunk);
      });
      return isWhole && hash.digest("hex") === object ? "whole" : "changed";
    } catch (error) {
      return whyUnread(error) === "missing" ? "missing" : "unreadable";
    }
  }

  /** @returns whether the file stayed the same meanwhile */
  async #send(
    { bytes, stats }: { readonly bytes: Buffer; readonly stats: BigIntStats },
    use: (chunk: Buffer) => Promise<void>,
  ): Promise<boolean> {
    const file = await open(bytes, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Number(stats.size) + 1));
      let rest = Number(stats.size);
      while (rest > 0) {
        const { bytesRead } = await file.read(buffer, 0, Math.min(rest, buffer.length), null);
        if (bytesRead === 0) return false;
        await use(buffer.subarray(0, bytesRead));
        rest -= bytesRead;
      }
      return fileStamp(await file.stat({ bigint: true })) === fileStamp(stats);
    } finally {
      await file.close();
    }
  }

  async #chunk(bytes: Buffer): Promise<void> {
    await writeChunk(bytes);
    await this.#pace.rest();
  }

  /** A pack with the commits that `without` does not reach. */
  async commits({ repository: path, commit, without }: Commits): Promise<FrameEnd> {
    const tree =
      path === "" ? this.#workspace : join(this.#workspace, Buffer.from(path, "latin1").toString());
    const directory = gitDirectory(tree);
    if (directory === null) return "missing";
    const source = new Repository(tree, directory);
    const exclusions = await existing(source, without);
    const child = source.start([
      "pack-objects",
      "--revs",
      "--stdout",
      "--quiet",
      "--threads=1",
      "--delta-base-offset",
    ]);
    const release = this.#pace.hold(child);
    try {
      child.stdin?.end([commit, ...exclusions.map((one) => `^${one}`)].join("\n").concat("\n"));
      return await this.#pack(child);
    } finally {
      release();
    }
  }

  async #pack(child: GitProcess): Promise<FrameEnd> {
    const { stdout } = child;
    if (stdout === null) return "failed";
    const end = new Promise<number | null>((resolve) => {
      child.on("error", () => resolve(null));
      child.on("close", resolve);
    });
    child.stderr?.resume();
    for await (const chunk of stdout) await this.#chunk(chunk as Buffer);
    return (await end) === 0 ? "whole" : "failed";
  }

  close(): void {
    this.#blobs?.close();
    this.#blobs = null;
  }
}
