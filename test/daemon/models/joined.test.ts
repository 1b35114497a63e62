/** Bodies that break off are joined to one stream (daemon/saving/restoring/joined.ts). */
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { JoinedBodies, type Passed } from "../../../daemon/saving/restoring/joined.ts";
import {
  chunkHead,
  frameEnd,
  FrameReader,
  wholeFrame,
  type FrameEnd,
} from "../../../src/domain/save/frames.ts";

const chunk = (text: string): Buffer => Buffer.concat([chunkHead(text.length), Buffer.from(text)]);
const FRAMES = [
  wholeFrame(Buffer.from("{}")),
  chunk("one"),
  chunk("two"),
  frameEnd("missing"),
  frameEnd("whole"),
];
const BODY = Buffer.concat(FRAMES);
/** The same frames in other chunks, as a store may read them. */
const OTHERWISE = Buffer.concat([
  wholeFrame(Buffer.from("{}")),
  chunk("onetwo"),
  frameEnd("missing"),
  frameEnd("whole"),
]);

const brokenOff = (bytes: Buffer): Readable =>
  Readable.from(
    (function* () {
      yield bytes;
      throw new Error("broken off");
    })(),
    { objectMode: false },
  );
const whole = (bytes: Buffer): Readable => Readable.from([bytes], { objectMode: false });

/** Each frame's text and end, whatever its chunks. */
const framesOf = (bytes: Buffer): readonly (readonly [string, FrameEnd])[] => {
  const frames: (readonly [string, FrameEnd])[] = [];
  let text = "";
  for (const part of new FrameReader().push(bytes)) {
    if (part.type === "chunk") text += part.bytes.toString("utf8");
    else {
      frames.push([text, part.end]);
      text = "";
    }
  }
  return frames;
};

const joined = async (bodies: readonly Readable[]) => {
  const output = new PassThrough();
  const text = buffer(output);
  const bodiesJoined = new JoinedBodies(output);
  const passed: Passed[] = [];
  // oxlint-disable-next-line no-await-in-loop -- one after another
  for (const body of bodies) passed.push(await bodiesJoined.pass(body));
  output.end();
  return { passed, frames: framesOf(await text) };
};

test.each([
  ["as before", BODY],
  ["in other chunks", OTHERWISE],
])("wherever a body breaks off, the next one goes on there, %s", async (_, next) => {
  for (let at = 0; at <= BODY.length; at += 1) {
    // oxlint-disable-next-line no-await-in-loop -- one after another
    const { passed, frames } = await joined([brokenOff(BODY.subarray(0, at)), whole(next)]);
    expect([at, passed]).toEqual([at, ["broken", "whole"]]);
    expect([at, frames]).toEqual([at, framesOf(BODY)]);
  }
});

test("several bodies may break off, also before the place of the one before", async () => {
  const cuts = [14, 3, 20, 0].map((at) => brokenOff(BODY.subarray(0, at)));
  const { passed, frames } = await joined([...cuts, whole(BODY)]);
  expect(passed).toEqual(["broken", "broken", "broken", "broken", "whole"]);
  expect(frames).toEqual(framesOf(BODY));
});

test.each([
  ["other bytes", [wholeFrame(Buffer.from("{}")), chunk("ONEtwo"), frameEnd("missing"), frameEnd("whole")]],
  ["fewer bytes", [wholeFrame(Buffer.from("{}")), chunk("one"), frameEnd("missing"), frameEnd("whole")]],
  ["another end", [wholeFrame(Buffer.from("{}")), chunk("onetwo"), frameEnd("whole"), frameEnd("whole")]],
  ["fewer frames", [wholeFrame(Buffer.from("{}"))]],
])("a body with %s is not mixed with the one before", async (_, frames) => {
  const begun = BODY.subarray(0, BODY.length - 5);
  const { passed } = await joined([brokenOff(begun), whole(Buffer.concat(frames))]);
  expect(passed).toEqual(["broken", "other"]);
});

test("a reader that has ended needs nothing more, and the body is read to its end", async () => {
  const output = new PassThrough();
  output.destroy();
  const body = whole(BODY);
  expect(await new JoinedBodies(output).pass(body)).toBe("whole");
  await new Promise((resolve) => void body.once("end", resolve));
});
