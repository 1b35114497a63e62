/** `npm run sim -- --seed N --runs M [--steps S]`: simulated runs from one seed on. */
import { parseArgs } from "node:util";
import { simulate } from "./run.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    runs: { type: "string" },
    steps: { type: "string" },
    trace: { type: "boolean" },
  },
});
const calls = new Map<string, number>();
const seed = Number(values.seed ?? 1);
for (let run = 0; run < Number(values.runs ?? 1); run += 1) {
  const started = process.hrtime.bigint();
  const result = simulate({ seed: seed + run, steps: Number(values.steps ?? 40) });
  process.stdout.write(
    `${JSON.stringify({ seed: result.seed, elapsed: result.elapsed, ms: Number((process.hrtime.bigint() - started) / 1000000n), lines: result.trace.length, digest: result.digest.slice(0, 8), violations: result.violations })}\n`,
  );
  for (const [k, v] of result.calls) calls.set(k, (calls.get(k) ?? 0) + v);
  if (values.trace === true) process.stdout.write(`${result.trace.join("\n")}\n`);
}
process.stdout.write(`${JSON.stringify([...calls].toSorted((a, b) => b[1] - a[1]).slice(0, 12))}\n`);
