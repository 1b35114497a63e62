import { expect, test } from "vitest";
import { Allowance } from "../../daemon/logs/allowance.ts";
import { LogRing, RING_BYTES } from "../../daemon/logs/log-ring.ts";
import { makeLog } from "../../daemon/logs/log.ts";
import { Redactor } from "../../src/domain/secret/redactor.ts";

const numbers = (lines: readonly { readonly seq: number }[]): number[] => lines.map(({ seq }) => seq);

test("numbers lines from one, writes each, and returns the lines after a number", () => {
  const written: string[] = [];
  const ring = new LogRing((line) => written.push(line));
  for (const name of ["a", "b", "c"]) ring.add((seq) => `${name}${seq}`);
  expect(written).toEqual(["a1\n", "b2\n", "c3\n"]);
  expect(ring.text).toBe("a1\nb2\nc3\n");
  expect(numbers(ring.after(0, RING_BYTES))).toEqual([1, 2, 3]);
  expect(numbers(ring.after(2, RING_BYTES))).toEqual([3]);
  expect(ring.after(3, RING_BYTES)).toEqual([]);
  expect(ring.after(99, RING_BYTES)).toEqual([]);
  // A portion contains at least one line, however small its limit.
  expect(numbers(ring.after(0, 1))).toEqual([1]);
  expect(numbers(ring.after(0, 4))).toEqual([1, 2]);
});

test("keeps the newest mebibyte and no more, however much is added", () => {
  const ring = new LogRing(() => undefined);
  const text = "é".repeat(512);
  const fit = Math.floor(RING_BYTES / (Buffer.byteLength(text) + 1));
  const added = fit * 5 + 3;
  for (let n = 0; n < added; n += 1) ring.add(() => text);
  expect(Buffer.byteLength(ring.text)).toBe(fit * (Buffer.byteLength(text) + 1));
  const kept = ring.after(0, RING_BYTES * 2);
  expect([kept[0]?.seq, kept.at(-1)?.seq, kept.length]).toEqual([added - fit + 1, added, fit]);
});

test("calls its listeners after each line, until they unsubscribe", () => {
  const ring = new LogRing(() => undefined);
  const heard: number[] = [];
  const stop = ring.listen(() => heard.push(ring.after(0, RING_BYTES).length));
  ring.add(String);
  ring.add(String);
  stop();
  ring.add(String);
  expect(heard).toEqual([1, 2]);
});

test("omits the daemon's own lines when there are too many, and says how many", () => {
  let now = 0;
  const lines: string[] = [];
  const ring = new LogRing((line) => lines.push(line));
  const log = makeLog({ redactor: new Redactor([]), ring, allowance: new Allowance(() => now) });
  for (let n = 0; n < 40_000; n += 1) log("turn", { active: n % 2 === 0 });
  const bytes = lines.join("").length;
  expect(bytes).toBeGreaterThan(1024 * 1024);
  expect(bytes).toBeLessThan(1.3 * 1024 * 1024);
  const written = lines.length;
  now = 1000;
  log("later");
  expect(lines.slice(written).map((line) => JSON.parse(line) as object)).toEqual([
    expect.objectContaining({ seq: written + 1, event: "lines were dropped", lines: 40_000 - written }),
    expect.objectContaining({ seq: written + 2, event: "later" }),
  ]);
});
