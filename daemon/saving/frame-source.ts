/* oxlint-disable no-await-in-loop -- frames have an order */
/** Frames of a stream, one after another. */
import type { Readable } from "node:stream";
import { FrameReader, type FrameEnd, type FramePart } from "../../src/domain/save/frames.ts";

/** The reason of a content that is missing because the stream ended before its frame did. The save itself may have it. */
const NOT_ARRIVED = "not_arrived";

export class FrameSource {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #reader = new FrameReader();
  #parts: readonly FramePart[] = [];
  #at = 0;
  #isBroken = false;

  constructor(stream: Readable) {
    this.#chunks = (stream as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  /** Whether the stream ended before a frame that was read. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Reads one frame to its end. @returns how it ended */
  async read(use: (chunk: Buffer) => Promise<void> | void): Promise<FrameEnd | typeof NOT_ARRIVED> {
    for (;;) {
      const part = this.#parts[this.#at];
      if (part === undefined) {
        const { done, value } = await this.#chunks.next();
        if (done === true) {
          this.#isBroken = true;
          return NOT_ARRIVED;
        }
        this.#parts = this.#reader.push(value);
        this.#at = 0;
        continue;
      }
      this.#at += 1;
      if (part.type === "end") return part.end;
      await use(part.bytes);
    }
  }

  /** Reads one frame as JSON. @throws if it is not whole */
  async json(): Promise<unknown> {
    const chunks: Buffer[] = [];
    const end = await this.read((chunk) => void chunks.push(chunk));
    if (end !== "whole") throw new Error("the command did not arrive");
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  }
}
