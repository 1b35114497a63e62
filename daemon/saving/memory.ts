/**
 * What the daemon keeps of the last listing: large files by their times, so that the next listing does not read them again, and
 * contents of small files that had changed. A save of a few small changes so needs one start of the workspace program.
 */
import { wholeFrame } from "../../src/domain/save/frames.ts";
import type { ReadRequest } from "../../src/domain/save/listing.ts";
import { CONTENTS_BYTES, type KeptListing, type KnownFile } from "./command.ts";

/** How many files are known by their times. */
const KNOWN_MAX = 50_000;

export interface ListingMemory {
  readonly known: readonly KnownFile[];
  readonly contents: ReadonlyMap<string, Buffer>;
  /** When the listing began, ms since 1970. */
  readonly since: number;
}

export const NO_MEMORY: ListingMemory = { known: [], contents: new Map(), since: 0 };

/**
 * Reads what the program says to keep. It comes from the agent's side: at worst, files are listed as they were, and the service
 * finds that contents are others than listed.
 */
export const readMemory = (text: Buffer, since: number): ListingMemory => {
  try {
    const { known, contents } = JSON.parse(text.toString("utf8")) as KeptListing;
    const read = contents.map(({ object, base64 }): [string, Buffer] => [
      object,
      Buffer.from(base64, "base64"),
    ]);
    const bytes = read.reduce((sum, [, content]) => sum + content.length, 0);
    return {
      known: known.slice(0, KNOWN_MAX),
      contents: new Map(bytes > CONTENTS_BYTES ? [] : read),
      since,
    };
  } catch {
    return NO_MEMORY;
  }
};

/** The answer to a request for contents. Null if the workspace has to be read for it. */
export const framesFrom = ({ contents }: ListingMemory, { items, commits }: ReadRequest): Buffer | null => {
  if (commits !== undefined) return null;
  const buffers = items.map(({ object }) => contents.get(object));
  return buffers.includes(undefined)
    ? null
    : Buffer.concat(buffers.flatMap((content) => (content === undefined ? [] : [wholeFrame(content)])));
};
