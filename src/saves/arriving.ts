/* oxlint-disable no-await-in-loop -- the chunks of one body have an order */
/** Contents as they arrive from a daemon: frame after frame, in memory while they are small, in a file beyond. */
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream, type WriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import * as Effect from "effect/Effect";
import { FrameReader, type FramePart } from "../domain/save/frames.ts";
import type { FrameEnd } from "../domain/save/listing.ts";
import { thrownText } from "../ground/thrown.ts";
import { DaemonUnreachable } from "../sandbox/daemon.ts";

/** Larger contents wait in a file. */
const MEMORY_BYTES = 8 * 1024 * 1024;

/** A frame has this long, and the time that its bytes take at the slowest useful speed. */
const FRAME_TIMEOUT_MS = 30_000;
const SLOWEST_BYTES_PER_MS = 256;

/** The content of one frame. */
export interface Content {
  readonly size: number;
  /** The id that git gives to it. */
  readonly object: string;
  /** Reads it, once. */
  readonly bytes: () => Buffer | Readable;
}

export interface ArrivedFrame {
  readonly end: FrameEnd;
  /** Null if the frame did not end whole. */
  readonly content: Content | null;
  readonly remove: () => Promise<void>;
}

/** The body ended before its last frame. */
export class BrokenOff extends Error {
  override readonly name = "BrokenOff";
}

const blobHash = (size: number) => createHash("sha1").update(`blob ${size}\0`);

/** Collects one frame. */
class Collector {
  readonly #directory: string;
  #chunks: Buffer[] = [];
  #size = 0;
  #file: { readonly path: string; readonly stream: WriteStream } | null = null;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async add(bytes: Buffer): Promise<void> {
    this.#size += bytes.length;
    if (this.#file === null && this.#size <= MEMORY_BYTES) {
      this.#chunks.push(bytes);
      return;
    }
    if (this.#file === null) {
      const path = join(this.#directory, `arriving-${randomUUID()}`);
      this.#file = { path, stream: createWriteStream(path, { mode: 0o600 }) };
      const before = this.#chunks;
      this.#chunks = [];
      for (const chunk of before) await this.#write(chunk);
    }
    await this.#write(bytes);
  }

  async #write(bytes: Buffer): Promise<void> {
    const stream = this.#file?.stream;
    if (stream !== undefined && !stream.write(bytes)) await once(stream, "drain");
  }

  async content(signal: AbortSignal): Promise<Content> {
    const file = this.#file;
    if (file === null) {
      const bytes = Buffer.concat(this.#chunks);
      return {
        size: bytes.length,
        object: blobHash(bytes.length).update(bytes).digest("hex"),
        bytes: () => bytes,
      };
    }
    file.stream.end();
    await finished(file.stream);
    const hash = blobHash(this.#size);
    for await (const chunk of createReadStream(file.path, { signal })) hash.update(chunk as Buffer);
    return { size: this.#size, object: hash.digest("hex"), bytes: () => createReadStream(file.path) };
  }

  async remove(): Promise<void> {
    this.#chunks = [];
    if (this.#file === null) return;
    this.#file.stream.destroy();
    await rm(this.#file.path, { force: true });
  }
}

/**
 * The frames of a body, one after another. The consumer removes each before it asks for the next.
 *
 * @param directory for contents that are too large for memory
 * @param signal ends it, even in the middle of a large content, and destroys the body
 * @throws BrokenOff, MalformedFrames, and the body's own errors
 */
export async function* arrivingFrames(
  body: Readable,
  directory: string,
  signal: AbortSignal,
): AsyncGenerator<ArrivedFrame> {
  // One that waits for more bytes does not hear that it should return.
  signal.addEventListener("abort", () => body.destroy(), { once: true });
  const reader = new FrameReader();
  let collector = new Collector(directory);
  try {
    for await (const bytes of body) {
      for (const part of reader.push(bytes as Buffer)) {
        if (part.type === "chunk") await collector.add(part.bytes);
        else {
          yield await receive({ collector, signal }, part);
          collector = new Collector(directory);
        }
      }
    }
    if (!reader.isBetweenFrames) throw new BrokenOff("the answer broke off");
  } finally {
    await collector.remove();
  }
}

const receive = async (
  { collector, signal }: { readonly collector: Collector; readonly signal: AbortSignal },
  { end }: Extract<FramePart, { type: "end" }>,
): Promise<ArrivedFrame> => ({
  end,
  content: end === "whole" ? await collector.content(signal) : null,
  remove: () => collector.remove(),
});

/** @param size of the listed content. Fails if the sandbox sends nothing more */
export const nextFrame = (
  frames: AsyncGenerator<ArrivedFrame>,
  size: number,
): Effect.Effect<ArrivedFrame, DaemonUnreachable> =>
  Effect.tryPromise({
    try: () => frames.next(),
    catch: (error) => new DaemonUnreachable({ message: thrownText(error) }),
  }).pipe(
    Effect.flatMap(({ done, value }) =>
      done === true
        ? Effect.fail(new DaemonUnreachable({ message: "the answer broke off" }))
        : Effect.succeed(value),
    ),
    Effect.timeoutOrElse({
      duration: FRAME_TIMEOUT_MS + size / SLOWEST_BYTES_PER_MS,
      orElse: () => Effect.fail(new DaemonUnreachable({ message: "the sandbox sends nothing more" })),
    }),
  );
