/** A store of saves in a directory of its own, for each test. */
import { afterAll, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gitSaveStore, type GitStoreOptions } from "../../src/saves/git-store.ts";
import type { SavePlace } from "../../src/saves/port.ts";
import { type Save, SaveStore } from "../../src/saves/store.ts";
import { objectId } from "../twins/save-store.ts";

const root = mkdtempSync(join(tmpdir(), "saves-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

export const blob = (content: string | Buffer): string => objectId(Buffer.from(content));

/** The id of a turn, greater for later ones. */
export const turnId = (turn: number): string => `0192d3a4-0000-7000-8000-${String(turn).padStart(12, "0")}`;

export const newPlace = (projectId: string = randomUUID()): SavePlace => ({
  projectId,
  sessionId: randomUUID(),
});

type Files = Readonly<Record<string, string | Buffer>>;

export const saveOf = (
  files: Files,
  { sandboxId = randomUUID() as string, at = 1_700_000_000_000 } = {},
): Save => ({
  sandboxId,
  at,
  base: null,
  head: { ref: "refs/heads/main", commit: null },
  heads: [],
  items: Object.entries(files).map(([path, content]) => ({
    kind: "file",
    path,
    mode: "100644",
    size: Buffer.byteLength(content),
    object: blob(content),
  })),
  commits: [],
  pending: [],
  skipped: [],
});

/** Stores a save in one part with exactly these contents. */
export const store = Effect.fnUntraced(function* (
  place: SavePlace,
  save: Save,
  contents: readonly (string | Buffer)[],
  name: "part" | "historyPart" = "part",
) {
  const saves = yield* SaveStore;
  const part = yield* saves[name](place);
  for (const content of contents) {
    const bytes = Buffer.from(content);
    yield* part.add(blob(bytes), { size: bytes.length, bytes });
  }
  yield* part.finish(save);
}, Effect.scoped);

/** Those of these objects that the session's saves have. */
export const read = Effect.fnUntraced(function* (place: SavePlace, ...objects: readonly string[]) {
  const contents = yield* (yield* SaveStore).contents(place, objects);
  return yield* Effect.promise(async () => {
    const texts: (string | null)[] = [];
    for await (const { size, bytes } of contents) {
      const content = bytes instanceof Readable ? Buffer.concat((await bytes.toArray()) as Buffer[]) : bytes;
      if (content !== null) expect(content.length).toBe(size);
      texts.push(content?.toString("latin1") ?? null);
    }
    return texts;
  });
}, Effect.scoped);

export const live = (
  name: string,
  test: (directory: string) => Effect.Effect<void, unknown, SaveStore | Scope.Scope>,
  options: Partial<GitStoreOptions> = {},
): void =>
  it.live(name, () => {
    const directory = join(root, randomUUID());
    const layer = gitSaveStore({ directory, projectBytes: 1e9, sessionBytes: 1e9, ...options });
    return Effect.provide(Effect.scoped(test(directory)), layer);
  });
