/**
 * A file on its way from a registry into the store, which any number of sandboxes read meanwhile.
 *
 *  D1 The last `HELD_BACK` bytes that have arrived are given to no reader before the checksum of the whole file was right. So a
 *     reader never has a wrong file in full, and a small one not at all.
 *  D2 A file that is wrong, too large or broken off is not kept.
 *  D3 A slow reader slows neither the download nor other readers. A reader that leaves does not end it.
 */
import { createHash } from "node:crypto";
import type { Checksum } from "../../domain/environment/packages.ts";
import { Refusal } from "../egress-messages.ts";
import { type ArtefactKey, type ArtefactStore, type Draft, StoreFull } from "./store.ts";

const HELD_BACK = 64 * 1024;
const READ_BYTES = 64 * 1024;

export interface Source {
  /** The length that the registry declares. */
  readonly bytes: number | null;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface DownloadOptions {
  readonly store: ArtefactStore;
  readonly key: ArtefactKey;
  /** The largest file that is kept. */
  readonly maxBytes: number;
  /** For messages. */
  readonly host: string;
  readonly now: () => number;
}

export class Download {
  /** The declared length, before the first chunk. Null if unknown. */
  readonly bytes: number | null;
  /** Settles when the file is kept, or was not. Never rejects: readers get the failure. */
  readonly ended: Promise<void>;
  readonly #options: DownloadOptions;
  readonly #draft: Draft;
  #isRight = false;
  #failure: Error | null = null;
  #readers = 0;
  #isOver = false;
  #news = Promise.withResolvers<void>();

  private constructor(options: DownloadOptions, source: Source, draft: Draft) {
    this.#options = options;
    this.#draft = draft;
    this.bytes = source.bytes;
    this.ended = this.#run(source);
  }

  /** @throws StoreFull if no draft can be made */
  static async begin(options: DownloadOptions, source: Source): Promise<Download> {
    return new Download(options, source, await options.store.draft());
  }

  /**
   * The file's bytes from its start, as they arrive (D1).
   * @throws Refusal if the file is wrong or broken off; StoreFull
   */
  async *read(): AsyncGenerator<Uint8Array, void, void> {
    this.#readers += 1;
    try {
      for (let at = 0; ;) {
        const news = this.#news.promise;
        const end = this.#isRight ? this.#draft.bytes : Math.max(0, this.#draft.bytes - HELD_BACK);
        if (this.#failure !== null) throw this.#failure;
        if (at < end) {
          const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, end - at));
          // oxlint-disable-next-line no-await-in-loop -- a stream
          const bytesRead = await this.#readAt(buffer, at);
          at += bytesRead;
          yield buffer.subarray(0, bytesRead);
        } else if (this.#isRight) return;
        // oxlint-disable-next-line no-await-in-loop -- a stream
        else await news;
      }
    } finally {
      this.#readers -= 1;
      await this.#closeIfOver();
    }
  }

  /** Also fails if the file was closed, because no reader came before it was kept. */
  async #readAt(buffer: Uint8Array, at: number): Promise<number> {
    const { bytesRead } = await this.#draft.handle
      .read(buffer, 0, buffer.length, at)
      .catch(() => ({ bytesRead: 0 }));
    if (bytesRead === 0) throw new StoreFull("the package cache cannot be read");
    return bytesRead;
  }

  async #run({ body }: Source): Promise<void> {
    const { store, key, now } = this.#options;
    try {
      await this.#take(body, key.checksum);
      await store.keep(this.#draft, key, now());
      this.#isRight = true;
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      await store.discard(this.#draft);
    }
    this.#isOver = true;
    this.#tell();
    await this.#closeIfOver();
  }

  async #take(body: AsyncIterable<Uint8Array>, { algorithm, hex }: Checksum): Promise<void> {
    const { maxBytes, host } = this.#options;
    const hash = createHash(algorithm);
    const chunks = body[Symbol.asyncIterator]();
    try {
      for (;;) {
        // oxlint-disable-next-line no-await-in-loop -- a stream
        const next = await chunks.next().catch(() => {
          throw new Refusal(502, `${host} broke off its answer`);
        });
        if (next.done === true) break;
        if (this.#draft.bytes + next.value.length > maxBytes)
          throw new Refusal(502, `${host} sent more than ${maxBytes} bytes for one file`);
        hash.update(next.value);
        // oxlint-disable-next-line no-await-in-loop -- a stream
        await this.#draft.write(next.value);
        this.#tell();
      }
    } finally {
      await chunks.return?.().catch(() => undefined);
    }
    if (this.bytes !== null && this.bytes !== this.#draft.bytes)
      throw new Refusal(502, `${host} broke off its answer`);
    if (hash.digest("hex") !== hex)
      throw new Refusal(502, `${host} sent a file that does not have the checksum of its own description`);
  }

  #tell(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers<void>();
  }

  async #closeIfOver(): Promise<void> {
    if (!this.#isOver || this.#readers > 0) return;
    await this.#draft.handle.close().catch(() => undefined);
  }
}
