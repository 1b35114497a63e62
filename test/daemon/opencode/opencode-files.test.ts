import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fileParts } from "../../../daemon/adapters/opencode/files.ts";

let directory = "";
beforeEach(() => (directory = mkdtempSync(path.join(tmpdir(), "platform-files-"))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** The head of a PNG of this size. */
const png = (width: number, height: number): Buffer => {
  const head = Buffer.alloc(33);
  head.write("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  return head;
};

const saved = (name: string, content: Buffer) => {
  const file = path.join(directory, name);
  writeFileSync(file, content);
  return { name, path: file, media_type: "image/png", bytes: content.length } as never;
};

const parts = (name: string, content: Buffer) => Effect.runPromise(fileParts([saved(name, content)]));

/** A picture of so many MiB. */
const heavy = (mib: number): Buffer => Buffer.concat([png(8, 8)], mib * 1024 * 1024);

it("puts a picture into the message, and its path", async () => {
  const [text, picture, ...more] = await parts("small.png", png(8000, 1));
  expect(text).toMatchObject({
    type: "text",
    text: expect.stringMatching(/small\.png \(image\/png/) as string,
  });
  expect(picture).toMatchObject({ type: "file", mime: "image/png" });
  expect(more).toEqual([]);
});

it("leaves out a picture that each provider would refuse from then on, and says why", async () => {
  const [large, ...none] = await parts("large.png", png(8001, 20));
  expect(none).toEqual([]);
  expect(large).toMatchObject({
    text: expect.stringMatching(/cannot see \S+large\.png: it has 8001 x 20 pixels.*at most 8000/) as string,
  });
  const [broken, ...nothing] = await parts("broken.png", png(8, 8).subarray(0, 12));
  expect(nothing).toEqual([]);
  expect(broken).toMatchObject({
    text: expect.stringContaining("broken.png: it is not a whole picture of the kinds") as string,
  });
});

it("tells the model that it cannot see a picture of too many bytes, alone or with the others of the message", async () => {
  const [large, ...none] = await parts("large.png", heavy(5));
  expect(none).toEqual([]);
  expect(large).toMatchObject({
    text: expect.stringMatching(/cannot see \S+large\.png: it has 5 MiB.*at most 3\.5 MiB/) as string,
  });
  const three = ["one.png", "two.png", "three.png"].map((name) => saved(name, heavy(3)));
  const [text, ...shown] = await Effect.runPromise(fileParts(three));
  expect(shown).toHaveLength(2);
  expect(text).toMatchObject({
    text: expect.stringMatching(/cannot see \S+three\.png: a message shows at most 7 MiB/) as string,
  });
});
