/* oxlint-disable no-await-in-loop -- the parts of one stream have an order */
/** Reads blobs from a repository, one after another, by one process of git. */
import type { FrameEnd } from "../../../src/domain/save/frames.ts";
import type { GitProcess, Repository } from "../repository.ts";

export class BlobReader {
  readonly #child: GitProcess;
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(repository: Repository) {
    this.#child = repository.start(["cat-file", "--batch"]);
    this.#child.on("error", () => undefined);
    this.#child.stderr?.resume();
    this.#chunks = (this.#child.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  async send(object: string, use: (chunk: Buffer) => Promise<void>): Promise<FrameEnd> {
    this.#child.stdin?.write(`${object}\n`);
    const line = await this.#line();
    if (line === null) return "failed";
    const [, type, size] = /^[0-9a-f]+ (\w+) (\d+)$/.exec(line) ?? [];
    if (size === undefined) return line.endsWith(" missing") ? "missing" : "failed";
    const isBlob = type === "blob";
    const isWhole = await this.#bytes(Number(size), isBlob ? use : async () => undefined);
    // The line end behind it.
    const isClosed = await this.#bytes(1, async () => undefined);
    return isWhole && isClosed && isBlob ? "whole" : "failed";
  }

  close(): void {
    this.#child.stdin?.end();
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#chunks.next();
    if (done === true) return false;
    this.#rest = this.#rest.length === 0 ? value : Buffer.concat([this.#rest, value]);
    return true;
  }

  async #line(): Promise<string | null> {
    for (;;) {
      const end = this.#rest.indexOf("\n");
      if (end >= 0) {
        const line = this.#rest.subarray(0, end).toString("latin1");
        this.#rest = this.#rest.subarray(end + 1);
        return line;
      }
      if (!(await this.#more())) return null;
    }
  }

  async #bytes(length: number, use: (chunk: Buffer) => Promise<void>): Promise<boolean> {
    let rest = length;
    while (rest > 0) {
      if (this.#rest.length === 0 && !(await this.#more())) return false;
      const chunk = this.#rest.subarray(0, rest);
      this.#rest = this.#rest.subarray(chunk.length);
      rest -= chunk.length;
      await use(chunk);
    }
    return true;
  }
}
