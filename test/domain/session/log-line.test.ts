import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  BEGINNING,
  isAfter,
  leavesGap,
  readLine,
  readLog,
  writeGap,
  writeLine,
} from "../../../src/domain/session/log-line.ts";

const AT = "2026-11-20T06:52:05.045Z";
const LATER = "2026-11-20T06:52:06.000Z";
const entry = (seq: number, more: Readonly<Record<string, unknown>> = {}, at = AT): string =>
  JSON.stringify({ seq, at, event: "listening", port: 8000, ...more });
const output = (seq: number, line: string): string =>
  entry(seq, { event: "output", source: "runtime", line });

test("reads the daemon's lines, the runtime's output, and other writers' lines between them", () => {
  const text = `sh: nothing yet\n${entry(1)}\n${output(2, "hello")}\nnode: warning\nmore\n${entry(3, { event: "boot", step: "ready" }, LATER)}\n`;
  expect(readLog(text)).toEqual([
    { seq: 0, sub: 1, at: null, source: "sandbox", line: "sh: nothing yet" },
    { seq: 1, sub: 0, at: AT, source: "daemon", line: "listening port=8000" },
    { seq: 2, sub: 0, at: AT, source: "runtime", line: "hello" },
    { seq: 2, sub: 1, at: AT, source: "sandbox", line: "node: warning" },
    { seq: 2, sub: 2, at: AT, source: "sandbox", line: "more" },
    { seq: 3, sub: 0, at: LATER, source: "daemon", line: "boot port=8000 step=ready" },
  ]);
});

test("returns each line once if a part of the log is repeated", () => {
  const stretch = `${entry(1)}\n${output(2, "a")}\n`;
  const numbers = readLog(`${stretch}${stretch}${output(3, "b")}\n`).map(({ seq }) => seq);
  expect(numbers).toEqual([1, 2, 3]);
});

test("accepts only well-formed lines as the daemon's, and only numbers as numbers", () => {
  for (const written of ["{}", '{"at":"now","event":"x"}', "[1]", '{"seq":1', "null", `x ${entry(1)}`]) {
    expect(readLine(written)).toBeNull();
    expect(readLog(written)).toEqual([{ seq: 0, sub: 1, at: null, source: "sandbox", line: written }]);
  }
  for (const seq of [0, -1, 1.5, 2 ** 60, "7", null]) {
    expect(readLine(entry(1, { seq }))).toBeNull();
    expect(readLog(entry(1, { seq }))[0]).toMatchObject({ seq: 0, sub: 1, source: "daemon" });
  }
});

test("reads a single line exactly as in a log", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1000 }), fc.string({ unit: "binary" }), (seq, line) => {
      expect(readLine(output(seq, line))).toEqual(readLog(output(seq, line))[0]);
    }),
  );
});

test("leaves no control character in a line for a terminal to obey [P09]", () => {
  const [line] = readLog(output(1, "\u001b[31mred\u0007\r\nforged\u009b2J\ttab\u2028"));
  expect(line?.line).toBe("␛[31mred␇␍␊forged\ufffd2J\ttab\ufffd");
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (written) => {
      for (const text of [output(1, written), written.replaceAll("\n", "")]) {
        for (const read of readLog(text)) {
          // oxlint-disable-next-line no-control-regex -- these characters are what it is about
          expect(writeLine(read)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]|\n./u);
        }
      }
    }),
  );
});

test("writes a line as its time, its source and its text, and reports missing lines", () => {
  const [first, second] = readLog(`before\n${entry(4)}`);
  if (first === undefined || second === undefined) throw new Error("both lines are read");
  expect(writeLine(first)).toBe("- sandbox before\n");
  expect(writeLine(second)).toBe(`${AT} daemon listening port=8000\n`);
  expect(writeGap(first, second)).toBe(`${AT} sandbox [3 lines are missing here]\n`);
});

test("finds the lines after a place, and reports missing lines before it", () => {
  const place = { seq: 3, sub: 1 };
  expect(isAfter({ seq: 3, sub: 1 }, place)).toBe(false);
  expect(isAfter({ seq: 3, sub: 2 }, place)).toBe(true);
  expect(isAfter({ seq: 4, sub: 0 }, place)).toBe(true);
  expect(isAfter({ seq: 2, sub: 9 }, place)).toBe(false);
  expect(leavesGap(place, { seq: 3, sub: 2 })).toBe(false);
  expect(leavesGap(place, { seq: 4, sub: 0 })).toBe(false);
  expect(leavesGap(place, { seq: 5, sub: 0 })).toBe(true);
  expect(leavesGap(place, { seq: 4, sub: 1 })).toBe(true);
  expect(leavesGap(BEGINNING, { seq: 1, sub: 0 })).toBe(false);
});
