/**
 * Reads contents of a session's saves with one `git cat-file --batch`. Only objects that a save of the session names are asked for.
 */
/* oxlint-disable no-await-in-loop -- git answers one question after the other */
import * as Effect from "effect/Effect";
import { Readable } from "node:stream";
import type { GitProcess } from "../git/run.ts";
import { spawnGit } from "../git/run.ts";
import type { SavePlace } from "./port.ts";
import { exists, storedObjects, type SavesDirectory, SAVES_CONFIG, storeError } from "./saves-repository.ts";
import type { StoredContent } from "./store.ts";

/** Larger contents are streams. */
const WHOLE_BYTES = 1024 * 1024;

const HEADER = /^([0-9a-f]{40}) blob (\d+)$/;

/** Git's answers, read as they are wanted. */
class Answers {
  readonly #git: GitProcess;
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);
  /** The unread bytes of the present content, with the line's end behind it. */
  #left = 0;

  constructor(git: GitProcess) {
    this.#git = git;
    this.#source = git.stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** At most so many bytes, at least one. */
  async #take(most: number): Promise<Buffer> {
    if (this.#rest.length === 0) {
      const { done, value } = await this.#source.next();
      if (done === true) throw new Error(`The saved content could not be read. ${this.#git.stderr()}`);
      this.#rest = value;
    }
    const bytes = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(bytes.length);
    return bytes;
  }

  async #line(): Promise<string> {
    let line = "";
    for (;;) {
      const chunk = await this.#take(this.#rest.indexOf(0x0a) + 1 || this.#rest.length || 1);
      line += chunk.toString("utf8");
      if (line.endsWith("\n")) return line.slice(0, -1);
    }
  }

  /** The size of the next blob, which must be this one. Unread bytes of the last content are passed over. */
  async next(object: string): Promise<number> {
    while (this.#left > 0) this.#left -= (await this.#take(this.#left)).length;
    const [, answer, size] = HEADER.exec(await this.#line()) ?? [];
    if (answer !== object) throw new Error(`The saved content ${object} is damaged.`);
    this.#left = Number(size) + 1;
    return Number(size);
  }

  async *content(): AsyncGenerator<Buffer> {
    while (this.#left > 1) {
      const chunk = await this.#take(this.#left - 1);
      this.#left -= chunk.length;
      yield chunk;
    }
  }
}

const whole = async (chunks: AsyncIterable<Buffer>): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
};

/** The blobs, in order, of those that `stored` has. */
export async function* readContents(
  git: GitProcess,
  objects: readonly string[],
  storedIds: ReadonlySet<string>,
): AsyncGenerator<StoredContent> {
  const answers = new Answers(git);
  git.stdin.end(objects.flatMap((object) => (storedIds.has(object) ? `${object}\n` : [])).join(""));
  for (const object of objects) {
    if (!storedIds.has(object)) {
      yield { object, size: 0, bytes: null };
      continue;
    }
    const size = await answers.next(object);
    if (size <= WHOLE_BYTES) yield { object, size, bytes: await whole(answers.content()) };
    else yield { object, size, bytes: Readable.from(answers.content(), { objectMode: false }) };
  }
}

// oxlint-disable-next-line require-await -- an iterable like the other one
async function* readNothing(objects: readonly string[]): AsyncGenerator<StoredContent> {
  for (const object of objects) yield { object, size: 0, bytes: null };
}

/** `contents` of the store. */
export const contentsIn = (directory: SavesDirectory) =>
  Effect.fnUntraced(function* (place: SavePlace, objects: readonly string[]) {
    const { path, prefix, turns } = yield* directory.session(place);
    yield* turns.shared;
    if (!(yield* exists(path))) return readNothing(objects);
    const storedIds = yield* storedObjects(path, prefix, objects);
    const git = yield* Effect.mapError(
      spawnGit({ repository: path, args: ["cat-file", "--batch"], config: SAVES_CONFIG }),
      storeError,
    );
    return readContents(git, objects, storedIds);
  });
