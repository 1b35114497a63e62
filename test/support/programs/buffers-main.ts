/**
 * Frees 500 MB of buffers beside live data, and prints how many full collections that took: `buffers-main.ts on|off`.
 */
import { PerformanceObserver, type PerformanceEntry } from "node:perf_hooks";
import { setImmediate as turn } from "node:timers/promises";
import { countBuffersWithHeap } from "../../../src/ground/heap.ts";

const MAJOR = 4;
const BUFFERS = 8_000;
const BYTES = 64 * 1024;

if (process.argv[2] === "on") countBuffersWithHeap();
let collections = 0;
/** Node's types lack the fields of a collection's entry. */
type Collection = PerformanceEntry & { readonly detail?: { readonly kind?: number } };
const count = (entries: readonly Collection[]): void => {
  collections += entries.filter(({ detail }) => detail?.kind === MAJOR).length;
};
const observer = new PerformanceObserver((list) => count(list.getEntries()));
observer.observe({ entryTypes: ["gc"] });
const alive = Array.from({ length: 200_000 }, (_, index) => ({ index, own: [index] }));
let last = Buffer.alloc(0);
for (let made = 0; made < BUFFERS; made += 1) {
  last = Buffer.allocUnsafeSlow(BYTES);
  if (made % 50 === 0) await turn();
}
await turn();
count(observer.takeRecords());
process.stdout.write(JSON.stringify({ collections, alive: alive.length, last: last.length }));
