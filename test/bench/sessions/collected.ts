/**
 * Loaded into the measured service before its program: on SIGUSR2 it collects its garbage and writes its memory
 * figures to the file that BENCH_MEMORY names. Uncollected garbage does not count as a session's memory.
 */
import { writeFileSync } from "node:fs";

process.on("SIGUSR2", () => {
  if (globalThis.gc === undefined) throw new Error("this wants --expose-gc");
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, rss, external } = process.memoryUsage();
  writeFileSync(process.env["BENCH_MEMORY"] ?? "", JSON.stringify({ heapUsed, rss, external }));
});
