/**
 * `npm run bench [-- --only reads,boot --write]`: every benchmark in a short form, one after the other, in about ten minutes. Prints one
 * table with the machine, the commit and the aims; `--write` also puts it into docs/benchmarks.md. The figures are less
 * exact than those of a benchmark's own run. A benchmark that fails is named in the table, and the run ends with 1. The last line is
 * one JSON object.
 */
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { BENCHES, type Bench, type Figure } from "./all/figures.ts";

const DOCUMENT = path.join(import.meta.dirname, "../../docs/benchmarks.md");
const [BEGIN, END] = ["<!-- The table of `npm run bench` -->", "<!-- The end of the table -->"];
/** For one benchmark. */
const PATIENCE_MS = 5 * 60 * 1000;

const { values } = parseArgs({
  options: { only: { type: "string" }, write: { type: "boolean", default: false } },
});
const only = values.only?.split(",");
const unknown = only?.find((name) => BENCHES.every((bench) => bench.name !== name));
if (unknown !== undefined)
  throw new Error(`--only names ${unknown}; there are ${BENCHES.map(({ name }) => name).join(", ")}`);
const wanted = BENCHES.filter(({ name }) => only === undefined || only.includes(name));

/** Ends the benchmark that runs with this process. */
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());

/** @returns the last line of a benchmark's output as JSON; null if it failed */
const run = async ({ name, options }: Bench): Promise<unknown> => {
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(PATIENCE_MS)]);
  const child = spawn(
    process.execPath,
    [path.join(import.meta.dirname, `${name}.ts`), ...options.split(" ").filter(Boolean)],
    {
      stdio: ["ignore", "pipe", "inherit"],
      signal,
      // Benchmarks end what they started when they are asked to end.
      killSignal: "SIGTERM",
    },
  );
  const code = new Promise<number | null>((resolve) => {
    child.once("error", () => undefined).once("close", resolve);
  });
  let last = "";
  for await (const line of createInterface({ input: child.stdout })) {
    process.stdout.write(`  ${line.slice(0, 200)}\n`);
    last = line;
  }
  if ((await code) !== 0) return null;
  return JSON.parse(last) as unknown;
};

/** `absent`: a benchmark has null for a part that this machine lacks. Null: the benchmark failed. */
type Value = number | "absent" | null;

const valueAt = (found: unknown, { at }: Figure): Value => {
  let part = found;
  for (const key of at) {
    if (typeof part !== "object" || part === null) return null;
    part = Reflect.get(part, key) as unknown;
    if (part === null) return "absent";
  }
  return typeof part === "number" ? part : null;
};

interface Row {
  readonly bench: string;
  readonly work: string;
  readonly value: Value;
  readonly unit: string;
  readonly aim: string;
}

const shown = ({ value, unit }: Pick<Row, "value" | "unit">): string => {
  if (value === null) return "failed";
  if (value === "absent") return "not on this machine";
  return `${value >= 100 ? Math.round(value) : Math.round(value * 100) / 100} ${unit}`;
};

const tableOf = (rows: readonly Row[], head: string): string =>
  [
    head,
    "",
    "| Benchmark | Work | Measured | Aim |",
    "| --- | --- | --- | --- |",
    ...rows.map((row) => `| ${row.bench} | ${row.work} | ${shown(row)} | ${row.aim} |`),
  ].join("\n");

const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
const load = loadavg().map((value) => Math.round(value * 10) / 10);
const rows: Row[] = [];
/** Seconds, by benchmark. */
const took: Record<string, number> = {};
const began = performance.now();
for (const bench of wanted) {
  process.stdout.write(`${bench.name}\n`);
  const from = performance.now();
  const found = stop.signal.aborted ? null : await run(bench).catch(() => null);
  const seconds = Math.round((performance.now() - from) / 1000);
  took[bench.name] = seconds;
  process.stdout.write(`${bench.name} took ${seconds} s\n`);
  for (const figure of bench.figures) {
    const { work, unit, aim } = figure;
    rows.push({ bench: bench.name, work, value: valueAt(found, figure), unit, aim });
  }
}
const minutes = Math.round((performance.now() - began) / 6000) / 10;
const date = new Date().toISOString().slice(0, 10);
const [{ model = "" } = {}] = cpus();
const head = `${date}, commit ${commit}, ${cpus().length} cores (${model.trim()}), load ${load[0]} at the start, ${minutes} minutes.`;
const table = tableOf(rows, head);
process.stdout.write(`\n${table}\n`);
if (values.write) {
  const [before, rest] = readFileSync(DOCUMENT, "utf8").split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined)
    throw new Error(`docs/benchmarks.md has no place for the table: ${BEGIN}`);
  writeFileSync(DOCUMENT, `${before}${BEGIN}\n\n${table}\n\n${END}${after}`);
  execFileSync("npx", ["oxfmt", DOCUMENT], { stdio: "ignore" });
}
process.stdout.write(
  `${JSON.stringify({ date, commit, cores: cpus().length, load, minutes, took, rows })}\n`,
);
if (rows.some(({ value }) => value === null)) process.exitCode = 1;
