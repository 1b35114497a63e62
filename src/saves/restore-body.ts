/** The body of a restoration: the plan, then each save's packs and contents, as frames. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { Readable } from "node:stream";
import { chunkHead, frameEnd } from "../domain/save/frames.ts";
import type { RestorePlan } from "../domain/save/listing.ts";
import { plannedHistory } from "./history.ts";
import type { Save, SaveStore, SaveStoreError, StoredContent } from "./store.ts";
import type { SavePlace } from "./port.ts";

/** Chunks on the way are at most this long, so that a reader has little to keep. */
const SENT_BYTES = 64 * 1024;

/** @param saves oldest first */
const toPlan = (saves: readonly Save[], notes: readonly string[], history: Save | null): RestorePlan => ({
  saves: saves.map(({ base, head, heads, items, commits }) => ({
    base,
    head,
    heads,
    items,
    commits: commits.map(({ object: _pack, ...ref }) => ref),
  })),
  // Paths that were never stored are in the notes, and named by `saved`.
  missing: [],
  ...(notes.length > 0 && { notes }),
  error: null,
  ...plannedHistory(history),
});

/** The objects of a plan's frames, in their order. */
const frameIds = (saves: readonly Save[]): readonly string[] =>
  saves.flatMap(({ commits, items }) => [...commits, ...items].flatMap(({ object }) => object ?? []));

const chunks = function* (bytes: Buffer): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += SENT_BYTES) {
    const chunk = bytes.subarray(at, at + SENT_BYTES);
    yield chunkHead(chunk.length);
    yield chunk;
  }
};

const frames = async function* (
  plan: RestorePlan,
  contents: AsyncIterable<StoredContent>,
): AsyncGenerator<Uint8Array> {
  yield* chunks(Buffer.from(JSON.stringify(plan)));
  yield frameEnd("whole");
  for await (const { bytes } of contents) {
    if (bytes === null) yield frameEnd("missing");
    else {
      if (Buffer.isBuffer(bytes)) yield* chunks(bytes);
      else for await (const chunk of bytes) yield* chunks(chunk as Buffer);
      yield frameEnd("whole");
    }
  }
};

/** @param options `notes`: sentences for the note in the conversation. `history`: the runtime's own record of it. @returns a stream that ends with the scope */
export const restoreBody = (
  saves: readonly Save[],
  {
    place,
    store,
    notes,
    history,
  }: {
    readonly place: SavePlace;
    readonly store: SaveStore["Service"];
    readonly notes: readonly string[];
    readonly history: Save | null;
  },
): Effect.Effect<Readable, SaveStoreError, Scope.Scope> =>
  Effect.flatMap(
    store.contents(place, frameIds(history === null ? saves : [...saves, history])),
    (contents) =>
      Effect.acquireRelease(
        Effect.sync(() =>
          Readable.from(frames(toPlan(saves, notes, history), contents), { objectMode: false }),
        ),
        (body) => Effect.sync(() => body.destroy()),
      ),
  );
