/**
 * Removes from the disk what no save names any more, within a day, and merges small packs, of which each part writes one.
 *
 *  C1 A collection has the repository alone: a part under way may build on an object that no ref names yet. It waits for
 *     no part: the next round tries again, from half a day after the last collection on.
 *  C2 Merging packs removes no object, so it goes beside parts.
 */
import * as Effect from "effect/Effect";
import { createHash } from "node:crypto";
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { filesystem, removeRepository } from "../git/repository/building.ts";
import { repositoriesIn } from "../git/repository/repository-path.ts";
import { runGit } from "../git/run.ts";
import type { MeasuresApi } from "../telemetry/port.ts";
import type { Collecting } from "./port.ts";
import {
  exists,
  listRefs,
  LONG_MS,
  type SavesDirectory,
  SAVES_CONFIG,
  storeError,
} from "./saves-repository.ts";
import { filesBytes } from "./usage.ts";

const HOUR = 3_600_000;
const DUE_MS = 12 * HOUR;

/** The state of the repository after its last collection. Its file's time is when that was. */
const COLLECTED = "collected";

const repack = (path: string, args: readonly string[]) =>
  Effect.mapError(
    runGit({
      repository: path,
      args: ["repack", "-d", "-q", "-n", ...args],
      config: SAVES_CONFIG,
      deadlineMs: LONG_MS,
    }),
    storeError,
  );

const packsIn = (path: string): Promise<readonly string[]> => readdir(join(path, "objects", "pack"));

/** Changes when a ref moves or a pack comes. */
const readState = Effect.fnUntraced(function* (path: string) {
  const refs = yield* listRefs(path, "refs/saves/");
  const packs = yield* Effect.mapError(
    filesystem("Reading the saves", () => packsIn(path)),
    storeError,
  );
  const lines = [...refs.map(({ name, commit }) => `${name} ${commit}`), ...packs.toSorted()];
  return { isEmpty: refs.length === 0, digest: createHash("sha256").update(lines.join("\n")).digest("hex") };
});

/** Packs and reports of parts that were given up. No part is under way. */
const removeLeftovers = (path: string) =>
  Effect.mapError(
    filesystem("Removing what parts left", async () => {
      const packs = (await packsIn(path)).filter((name) => name.startsWith("tmp_"));
      const reports = (await readdir(path)).filter((name) => name.startsWith("fast_import_crash_"));
      await Promise.all([
        ...packs.map((name) => rm(join(path, "objects", "pack", name), { force: true })),
        ...reports.map((name) => rm(join(path, name), { force: true })),
      ]);
    }),
    storeError,
  );

/** Removes everything that no save names. The caller has the repository alone. */
export const collect = Effect.fnUntraced(function* (path: string) {
  if (!(yield* exists(path))) return;
  yield* removeLeftovers(path);
  yield* repack(path, ["-a"]);
  const { digest } = yield* readState(path);
  yield* Effect.mapError(
    filesystem("Noting the collection", () => writeFile(join(path, COLLECTED), digest)),
    storeError,
  );
});

/** Ms since the last collection, and what the repository was after it. */
const lastCollection = (path: string) =>
  Effect.promise(async () => {
    const mark = join(path, COLLECTED);
    const file = await stat(mark).catch(() => null);
    const text = await readFile(mark, "utf8").catch(() => "");
    // oxlint-disable-next-line no-restricted-properties -- compared with the file system's clock, which no test drives
    return { ageMs: file === null ? Infinity : Date.now() - file.mtimeMs, digest: text };
  });

const tend = Effect.fnUntraced(function* (saves: SavesDirectory, projectId: string) {
  const { path, turns } = yield* saves.project(projectId);
  const state = yield* readState(path);
  if (state.isEmpty) {
    const removal = Effect.mapError(removeRepository(saves.directory, { projectId }), storeError);
    const isEmptyStill = Effect.map(readState(path), ({ isEmpty }) => isEmpty);
    yield* turns.alone(Effect.when(removal, isEmptyStill));
    return;
  }
  const { ageMs, digest } = yield* lastCollection(path);
  if (digest !== state.digest && ageMs > DUE_MS) {
    yield* turns.alone(collect(path));
    return;
  }
  const { packs } = yield* filesBytes(path);
  if (packs > saves.manyPacks)
    yield* Effect.scoped(Effect.andThen(turns.shared, repack(path, ["--geometric=2"])));
});

export const collection = (saves: SavesDirectory, measures: MeasuresApi): Collecting => {
  const tendOne = (projectId: string): Effect.Effect<void> =>
    Effect.catchTag(tend(saves, projectId), "SaveStoreError", ({ message }) =>
      Effect.logWarning("saved work could not be collected; trying again", {
        project: projectId,
        reason: message,
      }),
    );
  const countBytes = (projectId: string): Effect.Effect<number> =>
    saves.project(projectId).pipe(
      Effect.flatMap(({ path }) => filesBytes(path)),
      Effect.map(({ bytes }) => bytes),
      Effect.orElseSucceed(() => 0),
    );
  return {
    round: Effect.gen(function* () {
      yield* Effect.forEach(yield* repositoriesIn(saves.directory), tendOne, { discard: true });
      if (!measures.isOn) return;
      const sizes = yield* Effect.forEach(yield* repositoriesIn(saves.directory), countBytes);
      measures.set(
        "saves_bytes",
        {},
        sizes.reduce((sum, bytes) => sum + bytes, 0),
      );
    }),
  };
};
