/**
 * How contents travel between a daemon and the service: one frame after another, each of any length. A frame is any
 * number of chunks, each with its length in four bytes before it (big endian, not 0), then four bytes 0 and one byte that says
 * how it ended.
 */

/** How one frame ended. */
export const FRAME_ENDS = ["whole", "changed", "missing", "unreadable", "failed"] as const;
export type FrameEnd = (typeof FRAME_ENDS)[number];

/** The largest chunk. */
export const CHUNK_BYTES = 1024 * 1024;

export const chunkHead = (length: number): Uint8Array => {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(length);
  return head;
};

/** The end of a frame. */
export const frameEnd = (end: FrameEnd): Uint8Array => Buffer.from([0, 0, 0, 0, FRAME_ENDS.indexOf(end)]);

/** A whole frame with these bytes. */
export const wholeFrame = (bytes: Uint8Array): Buffer => {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    const chunk = bytes.subarray(at, at + CHUNK_BYTES);
    parts.push(chunkHead(chunk.length), chunk);
  }
  return Buffer.concat([...parts, frameEnd("whole")]);
};

/** What a reader of frames finds: a chunk of the present frame, or its end. */
export type FramePart =
  | { readonly type: "chunk"; readonly bytes: Buffer }
  | { readonly type: "end"; readonly end: FrameEnd };

/** The bytes are no frames. */
export class MalformedFrames extends Error {
  override readonly name = "MalformedFrames";
}

/** Reads frames from bytes as they arrive. One for each body. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  /** Whether everything so far ended with a frame's end. */
  get isBetweenFrames(): boolean {
    return this.#rest.length === 0 && !this.#isInside;
  }
  #isInside = false;

  /** @throws MalformedFrames */
  push(bytes: Uint8Array): readonly FramePart[] {
    this.#rest = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    const parts: FramePart[] = [];
    for (;;) {
      if (this.#rest.length < 4) return parts;
      const length = this.#rest.readUInt32BE(0);
      if (length > CHUNK_BYTES) throw new MalformedFrames(`a chunk of ${length} bytes is too long`);
      const total = length === 0 ? 5 : 4 + length;
      if (this.#rest.length < total) return parts;
      parts.push(this.#take(length, total));
    }
  }

  #take(length: number, total: number): FramePart {
    const bytes = this.#rest.subarray(4, total);
    this.#rest = this.#rest.subarray(total);
    this.#isInside = length > 0;
    if (length > 0) return { type: "chunk", bytes };
    const end = FRAME_ENDS[bytes[0] ?? -1];
    if (end === undefined) throw new MalformedFrames(`a frame cannot end with ${bytes[0]}`);
    return { type: "end", end };
  }
}
