/* oxlint-disable no-await-in-loop -- chunks have an order */
/** The standard output of the workspace program, no faster than it is read. */
import { CHUNK_BYTES, chunkHead, frameEnd, type FrameEnd } from "../../src/domain/save/frames.ts";

export const write = (bytes: Uint8Array): Promise<void> =>
  new Promise((resolve, fail) => {
    process.stdout.write(bytes, (error) => (error == null ? resolve() : fail(error)));
  });

/** One chunk of the present frame, or several if it is too long for one. */
export const writeChunk = async (bytes: Buffer): Promise<void> => {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    const chunk = bytes.subarray(at, at + CHUNK_BYTES);
    await write(chunkHead(chunk.length));
    await write(chunk);
  }
};

export const writeEnd = (end: FrameEnd): Promise<void> => write(frameEnd(end));
