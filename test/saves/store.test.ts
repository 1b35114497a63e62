import { describe, expect } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { createHash, randomUUID } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { SaveStore } from "../../src/saves/store.ts";
import { blob, live, newPlace, read, saveOf, store, turnId } from "./store-setup.ts";

describe("the store of saves", () => {
  live("gives back what a part stored, after the next part too", () =>
    Effect.gen(function* () {
      const place = newPlace();
      const sandboxId = randomUUID();
      yield* store(place, saveOf({ a: "one", gone: "soon" }, { sandboxId }), ["one", "soon"]);
      const second = saveOf({ a: "one", b: "two" }, { sandboxId, at: 1_700_000_001_000 });
      yield* store(place, second, ["two"]);
      const { last, earlier } = yield* (yield* SaveStore).load(place);
      expect(last).toEqual(second);
      expect(earlier).toEqual([]);
      expect(yield* read(place, blob("one"), blob("soon"), blob("two"))).toEqual(["one", null, "two"]);
    }),
  );

  live("keeps every byte of a path and of a content", () =>
    Effect.gen(function* () {
      const place = newPlace();
      const bytes = Buffer.from([...Array(256).keys()]);
      const save = saveOf({ [bytes.toString("latin1")]: bytes, empty: "" });
      yield* store(place, save, [bytes, ""]);
      expect((yield* (yield* SaveStore).load(place)).last).toEqual(save);
      expect(yield* read(place, blob(bytes), blob(""))).toEqual([bytes.toString("latin1"), ""]);
    }),
  );

  live("streams a large content in and out", () =>
    Effect.gen(function* () {
      const place = newPlace();
      const piece = Buffer.alloc(1024 * 1024, "0123456789abcdef");
      const size = 48 * piece.length;
      const hash = createHash("sha1").update(`blob ${size}\0`);
      for (let at = 0; at < size; at += piece.length) hash.update(piece);
      const object = hash.digest("hex");
      const save = {
        ...saveOf({}),
        items: [{ kind: "file", path: "big", mode: "100644", size, object }],
      } as const;
      const saves = yield* SaveStore;
      yield* Effect.scoped(
        Effect.gen(function* () {
          const part = yield* saves.part(place);
          const bytes = Readable.from(Array.from({ length: 48 }, () => piece));
          yield* part.add(object, { size, bytes });
          yield* part.finish(save);
        }),
      );
      const [content] = yield* read(place, object);
      expect(blob(Buffer.from(content ?? "", "latin1"))).toBe(object);
      // One that is not read is passed over.
      const both = yield* saves.contents(place, [object, object]);
      const sizes = yield* Effect.promise(async () => {
        const all: number[] = [];
        for await (const stored of both) all.push(stored.size);
        return all;
      });
      expect(sizes).toEqual([size, size]);
    }),
  );

  live("goes on after a content that broke off, grew, or is another one", () =>
    Effect.gen(function* () {
      const place = newPlace();
      const saves = yield* SaveStore;
      const save = saveOf({ whole: "whole" });
      yield* Effect.scoped(
        Effect.gen(function* () {
          const part = yield* saves.part(place);
          const add = (object: string, size: number, bytes: Buffer | Readable) =>
            Effect.flip(part.add(object, { size, bytes }));
          yield* add(blob("0123456789"), 10, Readable.from([Buffer.from("0123")]));
          yield* add(blob("0123"), 4, Readable.from([Buffer.from("012"), Buffer.from("3456789")]));
          yield* add(blob("abcd"), 4, Buffer.from("efgh"));
          yield* add(
            blob("0123456789"),
            10,
            Readable.from(
              (function* () {
                yield Buffer.from("01");
                throw new Error("the sandbox is gone");
              })(),
            ),
          );
          yield* part.add(blob("whole"), { size: 5, bytes: Buffer.from("whole") });
          yield* part.finish(save);
        }),
      );
      expect((yield* saves.load(place)).last).toEqual(save);
      expect(yield* read(place, blob("whole"), blob("0123"))).toEqual(["whole", null]);
    }),
  );

  live("a part that is given up changes nothing", () =>
    Effect.gen(function* () {
      const place = newPlace();
      const first = saveOf({ a: "one" });
      yield* store(place, first, ["one"]);
      const saves = yield* SaveStore;
      yield* Effect.scoped(
        Effect.gen(function* () {
          const part = yield* saves.part(place);
          yield* part.add(blob("two"), { size: 3, bytes: Buffer.from("two") });
        }),
      );
      expect((yield* saves.load(place)).last).toEqual(first);
      expect(yield* read(place, blob("two"))).toEqual([null]);
      const error = yield* Effect.flip(store(place, saveOf({ a: "two" }), []));
      expect(error.message).toContain("is not stored for this session");
      expect((yield* saves.load(place)).last).toEqual(first);
    }),
  );

  live("knows no object of another session, even in the same project", () =>
    Effect.gen(function* () {
      const mine = newPlace();
      const theirs = newPlace(mine.projectId);
      yield* store(mine, saveOf({ a: "secret" }), ["secret"]);
      yield* store(theirs, saveOf({ b: "other" }), ["other"]);
      expect(yield* read(theirs, blob("secret"), blob("other"))).toEqual([null, "other"]);
      const error = yield* Effect.flip(store(theirs, saveOf({ guessed: "secret" }), []));
      expect(error.message).toContain("is not stored for this session");
      const other = `${blob("other")}`;
      expect(yield* read(theirs, `${other}\n`, `../../x`, other)).toEqual([null, null, "other"]);
    }),
  );

  live("an id that is none reaches no path and no ref", (directory) =>
    Effect.gen(function* () {
      const saves = yield* SaveStore;
      const bad = ["../x", "*", `${randomUUID()}/../${randomUUID()}`, ""];
      for (const id of bad) {
        yield* Effect.flip(store({ projectId: randomUUID(), sessionId: id }, saveOf({}), []));
        yield* Effect.flip(store({ projectId: id, sessionId: randomUUID() }, saveOf({}), []));
        yield* Effect.flip(saves.remove({ projectId: randomUUID(), sessionId: id }));
      }
      const place = newPlace();
      yield* store(place, saveOf({}, { sandboxId: "../../last" }), []);
      yield* Effect.flip(saves.setAside(place));
      expect(readdirSync(directory)).toEqual([`${place.projectId}.git`]);
    }),
  );

  live("sets a save aside, and forgets it by the id of its sandbox", () =>
    Effect.gen(function* () {
      const place = newPlace();
      const saves = yield* SaveStore;
      const [first, second] = [saveOf({ a: "one" }, { at: 2 }), saveOf({ b: "two" }, { at: 1 })];
      yield* saves.setAside(place);
      yield* store(place, first, ["one"]);
      yield* saves.setAside(place);
      yield* store(place, second, ["two"]);
      yield* saves.setAside(place);
      expect(yield* saves.load(place)).toEqual({ last: null, earlier: [second, first] });
      expect(yield* read(place, blob("one"), blob("two"))).toEqual(["one", "two"]);
      // A content of an earlier sandbox need not be sent again.
      yield* store(place, saveOf({ c: "one" }), []);
      expect(yield* saves.forgetEarlier(place, [first.sandboxId, randomUUID()])).toEqual([first.sandboxId]);
      expect((yield* saves.load(place)).earlier).toEqual([second]);
    }),
  );

  live("copies a save to another session of the project, and only what the first one has", () =>
    Effect.gen(function* () {
      const place = newPlace();
      const other = newPlace(place.projectId);
      const saves = yield* SaveStore;
      const last = saveOf({ a: "one" });
      yield* store(place, last, ["one"]);
      const copy = { ...last, head: { ref: `refs/heads/${other.sessionId}`, commit: null } };
      yield* saves.copy(place, { sessionId: other.sessionId, save: copy });
      yield* saves.remove(place);
      expect(yield* saves.load(other)).toEqual({ last: copy, earlier: [] });
      expect(yield* read(other, blob("one"))).toEqual(["one"]);
      // The contents of a third session are not this one's to give.
      const stranger = newPlace(place.projectId);
      yield* store(stranger, saveOf({ b: "secret" }), ["secret"]);
      const wanted = { sessionId: randomUUID(), save: saveOf({ b: "secret" }) };
      yield* Effect.flip(saves.copy(other, wanted));
      expect((yield* saves.load({ ...place, sessionId: wanted.sessionId })).last).toBeNull();
    }),
  );

  live("replaces an earlier save by a part of it, and the last one stays", () =>
    Effect.gen(function* () {
      const place = newPlace();
      const saves = yield* SaveStore;
      const whole = saveOf({ a: "one", b: "two" });
      const last = saveOf({ c: "three" });
      yield* store(place, whole, ["one", "two"]);
      yield* saves.setAside(place);
      yield* store(place, last, ["three"]);
      const rest = { ...whole, items: whole.items.slice(0, 1) };
      yield* saves.replaceEarlier(place, rest);
      expect(yield* saves.load(place)).toEqual({ last, earlier: [rest] });
      expect(yield* read(place, blob("one"), blob("two"), blob("three"))).toEqual(["one", null, "three"]);
    }),
  );

  live("keeps the saves of the last fifty turns", (directory) =>
    Effect.gen(function* () {
      const place = newPlace();
      const saves = yield* SaveStore;
      yield* store(place, saveOf({ a: "one" }), ["one"]);
      const ids = Array.from({ length: 52 }, (_, turn) => turnId(turn));
      // They are in the order in which they ended, whatever their ids.
      for (const id of ids.toReversed()) yield* saves.keepTurn(place, id);
      yield* saves.keepTurn(place, turnId(0));
      const refs = join(directory, `${place.projectId}.git`, "refs", "saves", place.sessionId, "turns");
      // Earlier versions named turns by numbers.
      writeFileSync(join(refs, "4"), readFileSync(join(refs, readdirSync(refs)[0] ?? "")));
      // They are the oldest, and go first.
      yield* saves.keepTurn(place, turnId(0));
      expect(readdirSync(refs)).not.toContain("4");
      const turns = yield* saves.turns(place);
      expect(turns.map(({ id }) => id)).toEqual(ids.slice(0, 50).toReversed());
      yield* store(place, saveOf({ a: "two" }), ["two"]);
      expect((yield* saves.ofTurn(place, turnId(0)))?.items[0]?.object).toBe(blob("one"));
      for (const none of [turnId(51), "4", "../last"]) expect(yield* saves.ofTurn(place, none)).toBeNull();
    }),
  );

  live("keeps one history of a session beside its saves, until it is deleted", () =>
    Effect.gen(function* () {
      const place = newPlace();
      const saves = yield* SaveStore;
      expect(yield* saves.history(place)).toBeNull();
      yield* store(
        place,
        { ...saveOf({ a: "one" }), history: { runtime: "agent", id: "x" } },
        ["one"],
        "historyPart",
      );
      const next = { ...saveOf({ a: "one", b: "two" }), history: { runtime: "agent", id: "x" } };
      yield* store(place, next, ["two"], "historyPart");
      yield* store(place, saveOf({ c: "work" }), ["work"]);
      yield* saves.setAside(place);
      yield* saves.keepTurn(place, turnId(1));
      expect(yield* saves.history(place)).toEqual(next);
      expect((yield* saves.load(place)).earlier.map(({ items }) => items.length)).toEqual([1]);
      expect(yield* read(place, blob("one"), blob("two"))).toEqual(["one", "two"]);
      yield* saves.remove(place);
      expect(yield* saves.history(place)).toBeNull();
      expect(yield* read(place, blob("one"))).toEqual([null]);
    }),
  );

  live("removes a session's saves, and a project's", (directory) =>
    Effect.gen(function* () {
      const saves = yield* SaveStore;
      const one = newPlace();
      const other = newPlace(one.projectId);
      yield* store(one, saveOf({ a: "one" }), ["one"]);
      yield* store(other, saveOf({ a: "two" }), ["two"]);
      yield* saves.setAside(one);
      yield* saves.remove(one);
      expect(yield* saves.load(one)).toEqual({ last: null, earlier: [] });
      expect(yield* read(one, blob("one"))).toEqual([null]);
      expect(yield* read(other, blob("two"))).toEqual(["two"]);
      expect((yield* saves.sizes(one.projectId)).map(({ sessionId }) => sessionId)).toEqual([
        other.sessionId,
      ]);
      yield* saves.removeProject(one.projectId);
      expect(readdirSync(directory)).toEqual([]);
      expect(yield* saves.sizes(one.projectId)).toEqual([]);
    }),
  );
});
