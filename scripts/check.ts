/**
 * `npm run check`: types, lint, format, import rules, dead code, plain English. Two checks run at a time, the longest first. Each
 * prints what it says when it ends, and all run, so one report has everything that is wrong.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { text } from "node:stream/consumers";

/** Version 7 takes less CPU time than version 6 (docs/decisions/0031-packages-and-starts.md). With one checker it computes no type twice. */
const TSC = "node_modules/typescript-7/bin/tsc --checkers 1";
const CHECKS = [
  TSC,
  "knip",
  "npm run imports --silent",
  "oxfmt --check",
  `${TSC} --noEmit -p dashboard`,
  "node scripts/plain-english.ts",
  "oxlint --deny-warnings",
];
/** The type check takes a gigabyte. */
const AT_ONCE = Math.min(2, availableParallelism());

/** Runs one check. npm has put the programs of node_modules on the path. @returns whether it found nothing */
const passes = async (check: string): Promise<boolean> => {
  const began = performance.now();
  const [program = "", ...args] = check.split(" ");
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const [[code], out, err] = await Promise.all([
    once(child, "close") as Promise<[number | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  process.stdout.write(`${code === 0 ? "passed" : "FAILED"} in ${seconds} s: ${check}\n`);
  if (code !== 0) process.stdout.write(`${out}${err}\n`);
  return code === 0;
};

const waiting = [...CHECKS];
const failed: string[] = [];
const lane = async (): Promise<void> => {
  for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
    // eslint-disable-next-line no-await-in-loop -- one lane runs one check at a time
    if (!(await passes(check))) failed.push(check);
  }
};
await Promise.all(Array.from({ length: AT_ONCE }, lane));
if (failed.length > 0) process.exitCode = 1;
