import { expect, it } from "vitest";
import { imageSize } from "../../../src/domain/conversation/image-size.ts";

const bytes = (...parts: readonly (string | readonly number[])[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))),
  );

const png = bytes(
  "\x89PNG\r\n\x1a\n",
  [0, 0, 0, 13],
  "IHDR",
  [0, 0, 0x23, 0x28],
  [0, 0, 0, 7],
  [8, 6, 0, 0, 0],
);
const gif = bytes("GIF89a", [0x28, 0x23, 7, 0, 0, 0, 0]);
/** Two segments, one of them filled with what looks like a frame, then the frame. */
const jpeg = bytes(
  [0xff, 0xd8, 0xff, 0xe0, 0, 6, 0xff, 0xc0, 0, 0],
  [0xff, 0xc4, 0, 3, 0],
  [0xff, 0xff, 0xc2, 0, 11, 8, 0, 7, 0x23, 0x28, 3, 1, 0x22, 0],
);
const lossy = bytes(
  "RIFF",
  [0, 0, 0, 0],
  "WEBPVP8 ",
  [0, 0, 0, 0, 0, 0, 0, 0x9d, 1, 0x2a, 0x28, 0x63, 7, 0x40],
);
const lossless = bytes(
  "RIFF",
  [0, 0, 0, 0],
  "WEBPVP8L",
  [0, 0, 0, 0, 0x2f, 0x27, 0xa3, 1, 0],
  [0, 0, 0, 0, 0],
);
const extended = bytes("RIFF", [0, 0, 0, 0], "WEBPVP8X", [10, 0, 0, 0, 0, 0, 0, 0], [0x27, 0x23, 0, 6, 0, 0]);

it.each([
  ["image/png", png],
  ["image/gif", gif],
  ["image/jpeg", jpeg],
  ["image/webp", lossy],
  ["image/webp", lossless],
  ["image/webp", extended],
])("reads the size of %s %#", (type, file) => {
  expect(imageSize(type, file)).toEqual({ width: 9000, height: 7 });
});

it.each([
  ["image/png", png],
  ["image/gif", gif],
  ["image/jpeg", jpeg],
  ["image/webp", extended],
])("has none for each beginning of %s that is cut off", (type, file) => {
  const whole =
    { "image/png": 24, "image/gif": 10, "image/jpeg": jpeg.length - 4, "image/webp": 30 }[type] ?? 0;
  for (let length = 0; length < whole; length += 1)
    expect(imageSize(type, file.subarray(0, length))).toBeNull();
});

it("has none for other types, and for a picture without a side", () => {
  expect(imageSize("application/pdf", png)).toBeNull();
  expect(imageSize("image/gif", bytes("GIF89a", [0, 0, 7, 0]))).toBeNull();
});
