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

const listed = (kind: ListedItem["kind"], [path, text]: readonly [string, string]): ListedItem => ({
  kind,
  path,
  mode: "100644",
  size: text.length,
  object: objectId(Buffer.from(text)),
});

/** The content of one sandbox. */
export class Workspace {
  /** Paths that the agent cannot read. */
  readonly unreadable = new Set<string>();
  readonly files = new Map<string, string>();
  readonly removed = new Set<string>();
  readonly packs = new Map<string, string>();
  /** The runtime's own record of the conversation, by paths of the home directory. */
  readonly history = new Map<string, string>();
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
    const items = [...this.files].map((file) => listed("file", file));
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
    const record = [...this.history].map((file) => listed("history", file));
    return {
      base: TIP,
      head,
      heads: [],
      items: [...items, ...gone],
      commits,
      left,
      ...(record.length > 0 && { history: { runtime: "agent", id: "conversation-1", items: record } }),
    };
  }

  *frames({ items, commits }: ReadRequest): Generator<Uint8Array> {
    if (commits !== undefined) yield* this.#content(commits.ref, this.packs);
    for (const { kind, path } of items)
      yield* this.#content(path, kind === "history" ? this.history : this.files);
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
