/** What the daemon keeps of a listing, and when it answers a request for contents from that. */
import { expect, test } from "vitest";
import { framesFrom, readMemory, NO_MEMORY } from "../../../daemon/saving/memory.ts";
import { wholeFrame } from "../../../src/domain/save/frames.ts";

const kept = (sizes: Readonly<Record<string, number>>): Buffer => {
  const contents = Object.entries(sizes).map(([object, size]) => ({
    object,
    base64: Buffer.alloc(size, object).toString("base64"),
  }));
  return Buffer.from(JSON.stringify({ known: [], contents }));
};

const wanting = (...objects: readonly string[]) => ({
  share: 1,
  items: objects.map((object) => ({ kind: "file" as const, path: `${object}.txt`, object })),
});

test("a request is answered from a listing that had all its contents", () => {
  const memory = readMemory(kept({ a: 3, b: 2 }), 0);
  expect(framesFrom(memory, wanting("b", "a"))).toEqual(
    Buffer.concat([wholeFrame(Buffer.from("bb")), wholeFrame(Buffer.from("aaa"))]),
  );
  expect(framesFrom(memory, wanting("a", "c"))).toBe(null);
  const commits = { repository: "", ref: "HEAD", commit: "c", without: [] };
  expect(framesFrom(memory, { ...wanting("a"), commits })).toBe(null);
});

test("the memory is bounded, and empty if the program's text cannot be read", () => {
  expect(readMemory(kept({ a: 1024 * 1024 }), 0).contents.size).toBe(1);
  expect(readMemory(kept({ a: 1024 * 1024, b: 1 }), 0).contents.size).toBe(0);
  expect(readMemory(Buffer.from('{"known": 1}'), 5)).toEqual(NO_MEMORY);
});
