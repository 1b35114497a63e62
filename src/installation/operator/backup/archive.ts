/**
 * The file of a backup: a compressed tar archive, which `tar -tzf` reads on any machine. Its last entry contains the
 * length and the SHA-256 of every other one, so that a truncated or changed file is detected.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { constants, createGunzip, createGzip } from "node:zlib";
import * as Schema from "effect/Schema";
import { extract, pack } from "tar-stream";

const LAST = "checksums.json";
/** The longest text of one entry that is kept in memory: a hundred thousand names of the last one. */
const TEXT_MAX_BYTES = 64 * 1024 * 1024;

/** The file is not a complete and unchanged backup. `message` gives the reason. */
export class ArchiveRefused extends Schema.TaggedError<ArchiveRefused>()("ArchiveRefused", {
  message: Schema.String,
}) {}

/** Of a file that something else has written. */
export const NO_BACKUP = "it is not a backup of this service";

const refuse = (message: string) => new ArchiveRefused({ message });
const cutOff = () => refuse("it is cut off");
const damagedArchive = () => refuse("it is damaged");

interface Sum {
  readonly bytes: number;
  readonly sha256: string;
}
type Sums = Readonly<Record<string, Sum>>;

/** Writes an archive, entry by entry. */
export class ArchiveWriter {
  readonly #pack = pack();
  readonly #written: Promise<void>;
  readonly #sums: Record<string, Sum> = {};

  /** @param file a new path. Only this process's user may read the file. */
  constructor(file: string) {
    this.#written = pipeline(
      this.#pack,
      // Repositories are already packed, and rows shrink most at the first level.
      createGzip({ level: constants.Z_BEST_SPEED }),
      createWriteStream(file, { flags: "wx", mode: 0o600, flush: true }),
    );
    this.#written.catch(() => undefined);
  }

  /** @param bytes the length of the content. */
  async add(name: string, bytes: number, content: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
    const hash = createHash("sha256");
    const entry = this.#pack.entry({ name, size: bytes, mode: 0o600 });
    const end = once(entry, "close");
    // The waiting caller gets the error. A full disk also ends the wait for the entry.
    end.catch(() => undefined);
    for await (const chunk of content) {
      hash.update(chunk);
      if (!entry.write(chunk)) await Promise.race([once(entry, "drain"), end, this.#written]);
    }
    entry.end(null);
    await Promise.race([end, this.#written]);
    this.#sums[name] = { bytes, sha256: hash.digest("hex") };
  }

  addText(name: string, text: string): Promise<void> {
    const content = Buffer.from(text);
    return this.add(name, content.length, [content]);
  }

  async addFile(name: string, file: string): Promise<void> {
    await using handle = await open(file);
    const { size } = await handle.stat();
    await this.add(name, size, handle.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>);
  }

  /** Completes when everything is on the disk. */
  async finish(): Promise<void> {
    await this.addText(LAST, JSON.stringify(this.#sums));
    this.#pack.finalize();
    await this.#written;
  }

  /** Gives up. The caller removes the file. */
  abandon(): void {
    this.#pack.destroy();
  }
}

/** The readers' errors about a file in an operator's words. Errors of the disk stay unchanged. */
const refusal = (error: unknown): unknown => {
  if (!(error instanceof Error)) return error;
  const code = "code" in error ? error.code : undefined;
  if (code === "Z_BUF_ERROR") return cutOff();
  if (code === "Z_DATA_ERROR")
    return error.message === "incorrect header check" ? refuse(NO_BACKUP) : damagedArchive();
  if (error.message.startsWith("Unexpected end of data")) return cutOff();
  return /^Invalid (?:tar )?header|^Header exceeds/.test(error.message) ? damagedArchive() : error;
};

export interface Entry {
  readonly name: string;
  /** Read it before the next entry. Unread content is skipped, but still counted. */
  readonly content: AsyncIterable<Buffer>;
}

/** An entry's content. Adds its sum to `sums` when it is read to its end. */
async function* counted(
  name: string,
  content: AsyncIterable<Buffer>,
  sums: Map<string, Sum>,
): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    for await (const chunk of content) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  } catch (error) {
    // The entry's reader gets this error, not the loop over the entries.
    throw refusal(error);
  }
  sums.set(name, { bytes, sha256: hash.digest("hex") });
}

/** The whole of a small entry. */
export const entryText = async ({ content }: Pick<Entry, "content">): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > TEXT_MAX_BYTES) throw damagedArchive();
  }
  return Buffer.concat(chunks).toString("utf8");
};

/** Throws if the sums of the entries differ from those of the last entry. */
const expectSums = (sums: ReadonlyMap<string, Sum>, text: string): void => {
  const expected = JSON.parse(text) as Sums;
  for (const name of new Set([...sums.keys(), ...Object.keys(expected)])) {
    const [is, should] = [sums.get(name), expected[name]];
    if (is === undefined || should === undefined || is.bytes !== should.bytes || is.sha256 !== should.sha256)
      throw refuse(`it is damaged: ${name} has changed`);
  }
};

/**
 * The entries of an archive in order. Completes only if all of them match the last entry.
 *
 * @throws ArchiveRefused for a file that is not our archive, is truncated or damaged.
 */
export async function* readEntries(file: string): AsyncGenerator<Entry> {
  const [input, gunzip, archive] = [createReadStream(file), createGunzip(), extract()];
  input.once("error", (error) => gunzip.destroy(error));
  gunzip.once("error", (error) => archive.destroy(error));
  input.pipe(gunzip).pipe(archive);
  const sums = new Map<string, Sum>();
  let sumsText: string | null = null;
  try {
    for await (const entry of archive) {
      const { name } = entry.header;
      const bytes = entry as AsyncIterable<Buffer>;
      // No entry may follow the last one.
      if (sumsText !== null) throw damagedArchive();
      if (name === LAST) {
        sumsText = await entryText({ content: bytes });
        continue;
      }
      const content = counted(name, bytes, sums);
      yield { name, content };
      for await (const _ of content);
    }
  } catch (error) {
    throw refusal(error);
  } finally {
    input.destroy();
    gunzip.destroy();
  }
  if (sumsText === null) throw cutOff();
  expectSums(sums, sumsText);
}
