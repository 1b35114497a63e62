import { expect, test } from "vitest";
import { Allowance } from "../../daemon/logs/allowance.ts";
import { LogRing } from "../../daemon/logs/log-ring.ts";
import { makeLog } from "../../daemon/logs/log.ts";
import { RuntimeOutput } from "../../daemon/logs/output.ts";
import { Redactor } from "../../src/domain/secret/redactor.ts";

const MIB = 1024 * 1024;

/** A runtime's output, with a clock of the test's own. */
const output = (...secrets: readonly string[]) => {
  const clock = { ms: 0 };
  const entries: { event: string; line?: string; bytes?: number }[] = [];
  const written = { bytes: 0 };
  const redactor = new Redactor(secrets);
  const allowance = new Allowance(() => clock.ms);
  const ring = new LogRing((line) => {
    written.bytes += line.length;
    entries.push(JSON.parse(line) as { event: string });
  });
  const log = makeLog({ redactor, ring, allowance });
  const kept: string[] = [];
  const runtime = new RuntimeOutput({
    source: "runtime",
    redactor,
    log,
    allowance,
    onLine: (line) => kept.push(line),
  });
  const add = (text: string | Buffer, stream: "stdout" | "stderr" = "stdout") =>
    runtime.add(stream, Buffer.from(text));
  return { clock, entries, written, kept, add, flush: () => runtime.flush() };
};

test("splits chunks into lines, for each stream separately, also within a character", () => {
  const { add, kept, flush } = output();
  const bytes = Buffer.from("wörld\r\n");
  add("hello ");
  add("an error\n", "stderr");
  add(bytes.subarray(0, 2));
  add(bytes.subarray(2));
  add("without an end");
  expect(kept).toEqual(["an error", "hello wörld"]);
  flush();
  expect(kept).toEqual(["an error", "hello wörld", "without an end"]);
});

test("masks a secret that is written in two parts, is broken off, or contains escapes and NULs [I16]", () => {
  const { add, kept, flush } = output("canary-secret-value", "first line\nsecond line");
  add("a canary-sec");
  add("ret-value b\n");
  add("canary-\u001b[31msecret\u001b[0m-value\n");
  add("canary\0-secret-value\n");
  add("second line\n");
  add("cut off: canary-secret-val");
  flush();
  expect(kept).toEqual(["a [redacted] b", "[redacted]", "[redacted]", "[redacted]", "cut off: [redacted]"]);
});

test("removes terminals' control sequences and keeps the text between them", () => {
  const { add, kept } = output();
  add(
    "\u001b[1;31mred\u001b[0m \u001b]0;a title\u0007plain \u001b]8;;http://x\u001b\\link\u001b(B \u009b2Kend\n",
  );
  // A string that never ends would otherwise hide the rest of its line.
  add("\u001b]no end, and more\n");
  expect(kept).toEqual(["red plain link end", "no end, and more"]);
});

test("cuts a very long line, says so, and continues with the next one", () => {
  const { add, kept } = output();
  add("x".repeat(20_000));
  add("x".repeat(20_000));
  add("the line's end\nnext\n");
  add(`${"y".repeat(9000)}\n`);
  expect(kept).toHaveLength(3);
  expect(kept[0]).toBe(`${"x".repeat(8192)} [the rest of the line is cut]`);
  expect(kept[1]).toBe("next");
  expect(kept[2]?.length).toBeLessThan(8300);
});

test("shows no half of a secret if a long line is cut, at any position [I16]", () => {
  const secret = `canary-${"0123456789".repeat(300)}`;
  for (let from = 8192 - secret.length - 5; from < 8200; from += 97) {
    for (const ending of ["\n", `${"z".repeat(20_000)}`]) {
      const { add, kept } = output(secret);
      add(`${"x".repeat(from)}${secret}${ending}`);
      expect(kept.join("")).not.toContain("canary");
    }
  }
});

test("shows no half of a secret if an unfinished line ends among escapes [I16]", () => {
  const secret = `canary-${"0123456789".repeat(20)}`;
  const { add, kept } = output(secret);
  add("\u001b[0m".repeat(4000) + secret.slice(0, 100));
  expect(kept).toEqual(["[redacted]"]);
});

test("keeps 1 MiB of a flood each second, and says how much it omitted", () => {
  const { clock, add, entries, written, kept } = output();
  const chunk = Buffer.from(`${"flood ".repeat(10)}\n`.repeat(1000));
  const seconds = 10;
  for (; clock.ms < seconds * 1000; clock.ms += 1) for (let n = 0; n < 2; n += 1) add(chunk);
  expect(written.bytes).toBeGreaterThan(seconds * MIB);
  expect(written.bytes).toBeLessThan((seconds + 1.3) * MIB);
  const lines = kept.length;
  clock.ms += 1000;
  const rest = "the rest of a line\n";
  add(`${rest}after the flood\n`);
  expect(kept.slice(lines)).toEqual(["after the flood"]);
  const said = entries.filter(({ event }) => event === "output was dropped");
  const began = entries.filter(({ event }) => event.startsWith("output is dropped because"));
  expect(said.length).toBe(began.length);
  const leftOut = said.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
  const keptBytes = kept.slice(0, lines).reduce((sum, line) => sum + line.length + 1, 0);
  expect(leftOut + keptBytes).toBe(seconds * 1000 * 2 * chunk.length + rest.length);
});

test("keeps the last words of a runtime that ends in the middle of a flood", () => {
  const { add, kept, flush } = output();
  for (let n = 0; n < 200; n += 1) add(`${"x".repeat(100)}\n`.repeat(600));
  expect(kept.at(-1)).toBe("x".repeat(100));
  add("fatal: out of memory\n", "stderr");
  expect(kept.at(-1)).toBe("x".repeat(100));
  flush();
  expect(kept).toContain("fatal: out of memory");
});
