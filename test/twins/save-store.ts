/** A node's saves in memory (src/saves/store.ts), with faults at will. */
import * as Effect from "effect/Effect";
import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import type { SavePlace } from "../../src/saves/port.ts";
import { SaveStoreError, type PartWriter, type Save, type SaveStore } from "../../src/saves/store.ts";

/** The id that git gives to these bytes. */
export const objectId = (bytes: Uint8Array): string =>
  createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

const read = async (bytes: Buffer | Readable): Promise<Buffer> => {
  if (Buffer.isBuffer(bytes)) return bytes;
  const chunks: Buffer[] = [];
  for await (const chunk of bytes) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

interface Kept {
  last: Save | null;
  history: Save | null;
  earlier: Save[];
  readonly turns: Map<string, Save>;
  readonly objects: Map<string, Buffer>;
}

export class SaveStoreTwin {
  readonly #sessions = new Map<string, Kept>();
  /** How many bytes a session may still store. */
  room = Number.MAX_SAFE_INTEGER;
  /** Fails the storing of these objects. */
  readonly refused = new Map<string, SaveStoreError["code"]>();
  /** Runs before a description is stored. */
  beforeFinish: Effect.Effect<void> = Effect.void;
  /** How many descriptions were stored. */
  finished = 0;

  of(sessionId: string): Kept {
    const kept = this.#sessions.get(sessionId) ?? {
      last: null,
      history: null,
      earlier: [],
      turns: new Map(),
      objects: new Map(),
    };
    this.#sessions.set(sessionId, kept);
    return kept;
  }

  readonly store: SaveStore["Service"] = {
    load: ({ sessionId }) =>
      Effect.sync(() => ({ last: this.of(sessionId).last, earlier: [...this.of(sessionId).earlier] })),
    part: (place) => this.#part(place, "last"),
    history: ({ sessionId }) => Effect.sync(() => this.of(sessionId).history),
    historyPart: (place) => this.#part(place, "history"),
    room: () => Effect.sync(() => this.room),
    contents: ({ sessionId }, objects) =>
      Effect.sync(() => {
        const kept = this.of(sessionId);
        return (async function* () {
          for (const object of objects) {
            const bytes = kept.objects.get(object) ?? null;
            yield { object, size: bytes?.length ?? 0, bytes };
          }
        })();
      }),
    replaceEarlier: ({ sessionId }, save) =>
      Effect.sync(() => {
        const kept = this.of(sessionId);
        kept.earlier = kept.earlier.map((one) => (one.sandboxId === save.sandboxId ? save : one));
      }),
    copy: ({ sessionId: from }, { sessionId, save }) =>
      Effect.sync(() => {
        const kept = this.of(sessionId);
        kept.last = save;
        for (const [object, content] of this.of(from).objects) kept.objects.set(object, content);
      }),
    setAside: ({ sessionId }) =>
      Effect.sync(() => {
        const kept = this.of(sessionId);
        if (kept.last !== null) kept.earlier.push(kept.last);
        kept.last = null;
      }),
    keepTurn: ({ sessionId }, turn) =>
      Effect.sync(() => {
        const { last, turns } = this.of(sessionId);
        if (last !== null) turns.set(turn, last);
      }),
    turns: ({ sessionId }) =>
      Effect.sync(() => [...this.of(sessionId).turns].map(([id, { at }]) => ({ id, at }))),
    ofTurn: ({ sessionId }, turn) => Effect.sync(() => this.of(sessionId).turns.get(turn) ?? null),
    forgetEarlier: ({ sessionId }, ids) =>
      Effect.sync(() => {
        const kept = this.of(sessionId);
        const gone = kept.earlier.filter(({ sandboxId }) => ids.includes(sandboxId));
        kept.earlier = kept.earlier.filter((save) => !gone.includes(save));
        return gone.map(({ sandboxId }) => sandboxId);
      }),
    remove: ({ sessionId }) => Effect.sync(() => void this.#sessions.delete(sessionId)),
    removeProject: () => Effect.sync(() => this.#sessions.clear()),
    places: Effect.sync(() => new Map([["project", [...this.#sessions.keys()]]])),
    sizes: () =>
      Effect.sync(() =>
        [...this.#sessions].map(([sessionId, { objects }]) => ({
          sessionId,
          bytes: [...objects.values()].reduce((sum, { length }) => sum + length, 0),
        })),
      ),
  };

  #part({ sessionId }: SavePlace, name: "last" | "history"): Effect.Effect<PartWriter> {
    return Effect.sync(() => {
      const kept = this.of(sessionId);
      const added = new Map<string, Buffer>();
      return {
        add: (object, { bytes, size }) =>
          Effect.gen({ self: this }, function* () {
            const code = this.refused.get(object);
            if (code !== undefined) return yield* new SaveStoreError({ code, message: "the store refuses" });
            const content = yield* Effect.promise(() => read(bytes));
            if (content.length !== size || objectId(content) !== object)
              return yield* Effect.die(new Error("these are other bytes"));
            added.set(object, content);
          }),
        finish: (save) =>
          Effect.map(this.beforeFinish, () => {
            for (const [object, content] of added) kept.objects.set(object, content);
            for (const { object } of [...save.items, ...save.commits])
              if (object !== null && !kept.objects.has(object)) throw new Error(`${object} is missing`);
            kept[name] = save;
            if (name === "last") this.finished += 1;
          }),
      };
    });
  }
}
