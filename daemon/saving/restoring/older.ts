/**
 * The content that the older saves of a restoration brought back. A newer save does not replace it silently: a file stays beside
 * the newer version, and any other content that exists nowhere else is named. The deliveries of several nodes share this by a file.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ListedItem, RestorePart } from "../../../src/domain/save/listing.ts";
import { parentPath } from "../content.ts";

/** A name with the id of its content. */
type Version = readonly [string, string];

/** A staged version of a path. */
export type Staged = Pick<ListedItem, "path" | "mode" | "object" | "stage">;

interface Kept {
  readonly files: readonly Version[];
  readonly staged: readonly Staged[];
  readonly states: readonly Version[];
  readonly contents: readonly string[];
}

const NONE: Kept = { files: [], staged: [], states: [], contents: [] };
const FILE = "platform-restored.json";

/** A file of an older save that makes room. */
export interface InTheWay {
  readonly path: string;
  /** Whether its content is nowhere else. */
  readonly isOnly: boolean;
}

export class Older {
  readonly #file: string;
  readonly #isLast: boolean;
  /** Files in their own places. */
  readonly #files: Map<string, string>;
  #staged: Staged[];
  /** State files of git's directory. */
  #states: Version[];
  /** Contents that came back as files, under any name. */
  readonly #contents: Set<string>;
  /** Contents of the present save's files. */
  #present: ReadonlySet<string> = new Set();

  /** @param directory git's own. @param part which delivery this is. Absent: the only one */
  constructor(directory: string, { number, isLast }: RestorePart = { number: 1, isLast: true }) {
    this.#file = join(directory, FILE);
    this.#isLast = isLast;
    const { files, staged, states, contents } = number === 1 ? NONE : this.#read();
    this.#files = new Map(files);
    this.#staged = [...staged];
    this.#states = [...states];
    this.#contents = new Set(contents);
  }

  #read(): Kept {
    try {
      return JSON.parse(readFileSync(this.#file, "utf8")) as Kept;
    } catch {
      // The delivery before could not write it, and has said so.
      return NONE;
    }
  }

  /** Keeps all of it for the next delivery, and nothing after the last one. @throws if it cannot be written */
  close(): void {
    const snapshot: Kept = {
      files: [...this.#files],
      staged: this.#staged,
      states: this.#states,
      contents: [...this.#contents],
    };
    if (this.#isLast) rmSync(this.#file, { force: true });
    else writeFileSync(this.#file, JSON.stringify(snapshot));
  }

  /**
   * A newer save begins, which has an index and state files of its own. Paths that it did not stage itself stay staged.
   *
   * @returns the older state files, by their paths, what stays staged, and the names of index entries and state files whose content
   *   exists nowhere else
   */
  begin(items: readonly ListedItem[]): {
    readonly states: readonly string[];
    readonly staged: readonly Staged[];
    readonly lost: readonly string[];
  } {
    const contents = new Set<string>();
    const own = { file: new Map(), index: new Map(), state: new Map(), history: new Map() } satisfies Record<
      ListedItem["kind"],
      Map<string, string | null>
    >;
    for (const { kind, path, object } of items) {
      own[kind].set(path, object);
      if (kind === "file" && object !== null) contents.add(object);
    }
    this.#present = contents;
    const isGone = (object: string) => !contents.has(object) && !this.#contents.has(object);
    const states = this.#states;
    const replacements = this.#staged.filter(({ path }) => own.index.has(path));
    this.#states = [];
    this.#staged = this.#staged.filter(({ path }) => !own.index.has(path));
    return {
      states: states.map(([path]) => path),
      staged: [...this.#staged],
      lost: [
        ...replacements.flatMap(({ path, object }) =>
          object !== null && own.index.get(path) !== object && isGone(object) ? path : [],
        ),
        ...states.flatMap(([path, object]) =>
          own.state.get(path) !== object && isGone(object) ? `.git/${path}` : [],
        ),
      ],
    };
  }

  /**
   * Forgets the files of older saves that make room for a content: one in its place, or one where it needs a directory.
   *
   * @param object the content. Null if the path is gone
   */
  makeRoom(path: string, object: string | null): readonly InTheWay[] {
    const obstacles: InTheWay[] = [];
    for (let at = path; at !== ""; at = object === null ? "" : parentPath(at)) {
      const there = this.#files.get(at);
      if (there === undefined || (at === path && there === object)) continue;
      this.#files.delete(at);
      obstacles.push({ path: at, isOnly: !this.#present.has(there) });
    }
    return obstacles;
  }

  /** A file came back, in its own place or under another name. */
  addFile(path: string, as: string, object: string): void {
    this.#contents.add(object);
    if (as === path) this.#files.set(path, object);
  }

  /** An entry of the index came back. */
  addStaged({ path, mode, object, stage }: ListedItem): void {
    this.#staged.push({ path, mode, object, ...(stage !== undefined && { stage }) });
  }

  /** A state file came back. */
  addState(path: string, object: string): void {
    this.#states.push([path, object]);
  }
}
