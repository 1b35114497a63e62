/** A workspace in memory, as its daemon lists and reads it, with faults at will. */
import * as Effect from "effect/Effect";
import { chunkHead, frameEnd } from "../../src/domain/save/frames.ts";
import type {
  FrameEnd,
  ListedItem,
  Listing,
  ListRequest,
  ReadRequest,
} from "../../src/domain/save/listing.ts";
import { objectId } from "../twins/save-store.ts";

/** The pushed tip. */
export const TIP = "a".repeat(40);

/** The content of one sandbox. */
export class Workspace {
  /** Paths that the agent cannot read. */
  readonly unreadable = new Set<string>();
  readonly files = new Map<string, string>();
  readonly removed = new Set<string>();
  readonly packs = new Map<string, string>();
  /** How the reading of a path ends, instead of whole. */
  readonly ends = new Map<string, FrameEnd>();
  /** The connection breaks at these paths and refs. */
  readonly broken = new Set<string>();
  /** Runs before a path or a ref is read. */
  beforeRead: (name: string) => void = () => undefined;
  beforeAnswer: Effect.Effect<void> = Effect.void;
  readonly lists: ListRequest[] = [];
  readonly reads: ReadRequest[] = [];
  isAway = false;

  get listing(): Listing {
    const items = [...this.files].map(([path, text]): ListedItem => ({
      kind: "file",
      path,
      mode: "100644",
      size: text.length,
      object: objectId(Buffer.from(text)),
    }));
    const gone = [...this.removed].map((path): ListedItem => ({
      kind: "file",
      path,
      mode: "000000",
      size: 0,
      object: null,
    }));
    const commits = [...this.packs].map(([ref, pack]) => ({
      repository: "",
      ref,
      commit: objectId(Buffer.from(ref)),
      within: null,
      size: pack.length,
    }));
    const head = { ref: "refs/heads/session", commit: TIP };
    const left = [
      { path: "node_modules/", reason: "ignored", count: 3 },
      ...[...this.unreadable].map((path) => ({ path, reason: "unreadable" })),
    ];
    return { base: TIP, head, heads: [], items: [...items, ...gone], commits, left };
  }

  *frames({ items, commits }: ReadRequest): Generator<Uint8Array> {
    if (commits !== undefined) yield* this.#content(commits.ref, this.packs);
    for (const { path } of items) yield* this.#content(path, this.files);
  }

  *#content(name: string, contents: ReadonlyMap<string, string>): Generator<Uint8Array> {
    this.beforeRead(name);
    if (this.broken.has(name)) throw new Error("the connection broke");
    yield* this.#frame(name, contents.get(name));
  }

  *#frame(name: string, text: string | undefined): Generator<Uint8Array> {
    const end = text === undefined ? "missing" : (this.ends.get(name) ?? "whole");
    if (text !== undefined && text !== "") {
      yield chunkHead(text.length);
      yield Buffer.from(text);
    }
    yield frameEnd(end);
  }
}
