import { describe, expect } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { randomBytes, randomUUID } from "node:crypto";
import { readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { SaveCollection, type SavePlace } from "../../src/saves/port.ts";
import { SaveStore } from "../../src/saves/store.ts";
import { blob, live, newPlace, read, saveOf, store, turnId } from "./store-setup.ts";

const noise = (name: string) => randomBytes(200_000).toString("hex") + name;
const bytesOnDisk = (directory: string, { projectId }: SavePlace): number =>
  readdirSync(join(directory, `${projectId}.git`, "objects"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
/** As if the last collection were a day ago. */
const dayLater = (directory: string, { projectId }: SavePlace): void => {
  const before = new Date(Date.now() - 86_400_000); // oxlint-disable-line no-restricted-properties -- the file system's clock
  utimesSync(join(directory, `${projectId}.git`, "collected"), before, before);
};

describe("the room of saves", () => {
  live("a collection removes what no save names, and waits for a part", (directory) =>
    Effect.gen(function* () {
      const place = newPlace();
      const saves = yield* SaveStore;
      const { round } = yield* SaveCollection;
      const [gone, turn, earlier, last] = ["gone", "turn", "earlier", "last"].map(noise);
      if (gone === undefined || turn === undefined || earlier === undefined || last === undefined) return;
      const sandboxId = randomUUID();
      yield* store(place, saveOf({ a: gone }, { sandboxId }), [gone]);
      yield* round;
      yield* store(place, saveOf({ a: turn }, { sandboxId }), [turn]);
      yield* saves.keepTurn(place, turnId(1));
      yield* store(place, saveOf({ a: earlier }, { sandboxId }), [earlier]);
      yield* saves.setAside(place);
      yield* store(place, saveOf({ a: last }), [last]);
      const before = bytesOnDisk(directory, place);
      yield* round; // the last collection was a moment ago
      expect(bytesOnDisk(directory, place)).toBe(before);
      dayLater(directory, place);
      yield* Effect.scoped(
        Effect.gen(function* () {
          const part = yield* saves.part(place);
          yield* part.add(blob(gone), { size: gone.length, bytes: Buffer.from(gone) });
          yield* round;
          yield* part.finish(saveOf({ a: gone, b: last }));
        }),
      );
      expect(yield* read(place, ...[gone, turn, earlier, last].map(blob))).toEqual([
        gone,
        turn,
        earlier,
        last,
      ]);
      yield* store(place, saveOf({ b: last }), []);
      yield* round;
      expect(bytesOnDisk(directory, place)).toBeLessThan(before - 200_000);
      expect(yield* read(place, ...[gone, turn, earlier, last].map(blob))).toEqual([
        null,
        turn,
        earlier,
        last,
      ]);
      yield* saves.remove(place);
      yield* round;
      expect(readdirSync(directory)).toEqual([]);
    }),
  );

  live(
    "a collection merges the packs of many parts",
    (directory) =>
      Effect.gen(function* () {
        const place = newPlace();
        const { round } = yield* SaveCollection;
        const packs = () =>
          readdirSync(join(directory, `${place.projectId}.git`, "objects", "pack")).filter((name) =>
            name.endsWith(".pack"),
          ).length;
        yield* store(place, saveOf({ a: "0" }), ["0"]);
        yield* round;
        for (const text of ["1", "2", "3", "4"]) yield* store(place, saveOf({ a: text }), [text]);
        expect(packs()).toBe(5);
        yield* round;
        expect(packs()).toBeLessThan(4);
        expect(yield* read(place, blob("4"))).toEqual(["4"]);
      }),
    { manyPacks: 4 },
  );

  live(
    "at a limit the oldest turns' saves go, and no other",
    () =>
      Effect.gen(function* () {
        const place = newPlace();
        const other = newPlace(place.projectId);
        const saves = yield* SaveStore;
        const sandboxId = randomUUID();
        const texts = ["theirs", "first", "second", "last"].map(noise);
        const [theirs = "", first = "", second = "", last = ""] = texts;
        yield* store(other, saveOf({ a: theirs }), [theirs]);
        for (const [turn, text] of [first, second, last].entries()) {
          yield* store(place, saveOf({ a: text }, { sandboxId, at: 1_700_000_000_000 + turn }), [text]);
          yield* saves.keepTurn(place, turnId(turn));
        }
        // Each compresses to a bit more than 200,000 bytes.
        expect(yield* saves.room(place, 100_000)).toBeGreaterThan(100_000);
        expect(yield* read(place, blob(first), blob(second))).toEqual([first, second]);
        expect(yield* saves.room(place, 400_000)).toBeGreaterThan(400_000);
        expect(yield* read(place, blob(first), blob(second))).toEqual([null, second]);
        const room = yield* saves.room(place, 10_000_000);
        expect(room).toBeGreaterThan(600_000);
        expect(room).toBeLessThan(900_000);
        expect(yield* read(place, blob(second), blob(last))).toEqual([null, last]);
        expect(yield* read(other, blob(theirs))).toEqual([theirs]);
        const sizes = yield* saves.sizes(place.projectId);
        expect(sizes.map(({ bytes }) => Math.round(bytes / 100_000))).toEqual([2, 2]);
      }),
    { sessionBytes: 1_000_000, projectBytes: 1_100_000 },
  );

  let disk = { free: 0, total: 0 };
  live(
    "takes nothing while a tenth of the disk is not free",
    () =>
      Effect.gen(function* () {
        const place = newPlace();
        const saves = yield* SaveStore;
        disk = { free: 1500, total: 10_000 };
        expect(yield* saves.room(place, 10)).toBe(500);
        disk = { free: 1000, total: 10_000 };
        expect(yield* Effect.flip(saves.room(place, 10))).toMatchObject({ code: "full" });
      }),
    { disk: Effect.sync(() => disk) },
  );
});
