import { expect, test } from "vitest";
import {
  CHUNK_BYTES,
  chunkHead,
  frameEnd,
  FrameReader,
  MalformedFrames,
} from "../../../src/domain/save/frames.ts";

const chunk = (text: string): Uint8Array => Buffer.concat([chunkHead(text.length), Buffer.from(text)]);
const BODY = Buffer.concat([
  chunk("one"),
  chunk("two"),
  frameEnd("whole"),
  frameEnd("changed"),
  chunk("x"),
  frameEnd("failed"),
]);

const read = (pieces: readonly Uint8Array[]) => {
  const reader = new FrameReader();
  const parts = pieces.flatMap((piece) => reader.push(piece));
  return { parts: parts.map((part) => (part.type === "chunk" ? part.bytes.toString() : part)), reader };
};

test.each([1, 2, 3, 7, BODY.length])("frames are the same however the bytes arrive: %d at a time", (step) => {
  const pieces = Array.from({ length: Math.ceil(BODY.length / step) }, (_, at) =>
    BODY.subarray(at * step, (at + 1) * step),
  );
  const { parts, reader } = read(pieces);
  expect(parts).toEqual([
    "one",
    "two",
    { type: "end", end: "whole" },
    { type: "end", end: "changed" },
    "x",
    { type: "end", end: "failed" },
  ]);
  expect(reader.isBetweenFrames).toBe(true);
});

test.each([
  ["inside a chunk", BODY.subarray(0, 5)],
  ["after a chunk", chunk("one")],
  ["inside an end", frameEnd("whole").subarray(0, 4)],
])("a body that ends %s has no whole frame at its end", (_, bytes) => {
  expect(read([bytes]).reader.isBetweenFrames).toBe(false);
});

test.each([
  ["a chunk that is too long", chunkHead(CHUNK_BYTES + 1)],
  ["an end that has no meaning", Buffer.from([0, 0, 0, 0, 99])],
])("%s is refused", (_, bytes) => {
  expect(() => read([bytes])).toThrow(MalformedFrames);
});
