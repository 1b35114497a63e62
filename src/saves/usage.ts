/** How many bytes of the disk a project's saves use: by session, and in all. */
import * as Effect from "effect/Effect";
import { runGit } from "../git/run.ts";
import type { SessionSize } from "./port.ts";
import {
  listRefs,
  LONG_MS,
  SAVES_CONFIG,
  type SaveRef,
  sessionOfRef,
  storeError,
} from "./saves-repository.ts";

/** The bytes of these commits' objects, as they are packed. */
const countBytes = (path: string, commits: readonly string[]) =>
  runGit({
    repository: path,
    args: ["rev-list", "--objects", "--disk-usage", "--stdin"],
    stdin: commits.map((commit) => `${commit}\n`).join(""),
    config: SAVES_CONFIG,
    deadlineMs: LONG_MS,
  }).pipe(
    Effect.mapBoth({
      onFailure: storeError,
      onSuccess: ({ stdout }) => Number(stdout.toString("utf8").trim()),
    }),
  );

/** Sizes of sessions, largest first. A session whose refs did not move is not counted again. */
export const makeUsage = () => {
  const cache = new Map<string, { readonly commits: string; readonly bytes: number }>();

  const session = Effect.fnUntraced(function* (path: string, sessionId: string, refs: readonly SaveRef[]) {
    const key = `${path} ${sessionId}`;
    const commits = [...new Set(refs.map(({ commit }) => commit))].toSorted();
    const before = cache.get(key);
    if (before?.commits === commits.join(" ")) return before.bytes;
    const bytes = yield* countBytes(path, commits);
    cache.set(key, { commits: commits.join(" "), bytes });
    return bytes;
  });

  return Effect.fnUntraced(function* (path: string) {
    const bySession = Map.groupBy(yield* listRefs(path, "refs/saves/"), sessionOfRef);
    for (const key of cache.keys()) {
      const [at, sessionId = ""] = key.split(" ");
      if (at === path && !bySession.has(sessionId)) cache.delete(key);
    }
    const sizes: SessionSize[] = [];
    for (const [sessionId, refs] of bySession)
      sizes.push({ sessionId, bytes: yield* session(path, sessionId, refs) });
    return sizes.toSorted((one, other) => other.bytes - one.bytes);
  });
};

/** What the repository's files use, with what no save names any more. */
export const filesBytes = (path: string) =>
  runGit({ repository: path, args: ["count-objects", "-v"], config: SAVES_CONFIG }).pipe(
    Effect.mapBoth({
      onFailure: storeError,
      onSuccess: ({ stdout }) => {
        const sizes = new Map(
          stdout
            .toString("utf8")
            .split("\n")
            .map((line): [string, number] => {
              const [name = "", count = ""] = line.split(": ");
              return [name, Number(count)];
            }),
        );
        const kib = (name: string): number => (sizes.get(name) ?? 0) * 1024;
        return {
          bytes: kib("size") + kib("size-pack") + kib("size-garbage"),
          packs: sizes.get("packs") ?? 0,
        };
      },
    }),
  );
