/** Saved work that a test writes into a data directory, and looks for in another one. */
import * as Effect from "effect/Effect";
import { savesIn } from "../../../../src/saves/directories.ts";
import { gitSaveStore } from "../../../../src/saves/git-store.ts";
import type { SavePlace } from "../../../../src/saves/port.ts";
import { SaveStore } from "../../../../src/saves/store.ts";
import { blob, read, saveOf, store } from "../../../saves/store-setup.ts";

const inSaves = <A, E>(dataDir: string, effect: Effect.Effect<A, E, SaveStore>): Promise<A> =>
  Effect.runPromise(
    Effect.provide(
      effect,
      gitSaveStore({ directory: savesIn(dataDir), projectBytes: 1e9, sessionBytes: 1e9 }),
    ),
  );

const CONTENT = "not pushed";

/** @returns its paths and contents in another data directory. */
export const writeSavedWork = async (dataDir: string, place: SavePlace) => {
  await inSaves(dataDir, store(place, saveOf({ "a.txt": CONTENT }), [CONTENT]));
  return (other: string): Promise<unknown> =>
    inSaves(
      other,
      Effect.gen(function* () {
        const { last } = yield* (yield* SaveStore).load(place);
        const contents = yield* read(place, blob(CONTENT));
        return [last?.items.map(({ path }) => path), contents];
      }),
    );
};
