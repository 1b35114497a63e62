/** Tunes V8's garbage collection for a process that passes many bytes on. */
import { setFlagsFromString } from "node:v8";

/** The engine version that has the setting below but does not apply it by default. */
const V8_MAJOR = "13";

/** How much garbage the heap may hold before a collection, in percent of live data. */
const GARBAGE_PERCENT = 200;

/**
 * Makes the engine count buffers as part of its heap when it decides whether to collect. Otherwise 15 MB of buffers
 * trigger a collection of their own, and each one walks all live data: two thirds of the work of a large clone. Call
 * this once, at the start. `npm run bench:git` shows the gain, test/git/memory.deep.test.ts the possible cost.
 */
export const countBuffersWithHeap = (): void => {
  if (!process.versions.v8.startsWith(`${V8_MAJOR}.`)) return;
  setFlagsFromString("--external-memory-accounted-in-global-limit");
  setFlagsFromString(`--heap-growing-percent=${GARBAGE_PERCENT}`);
};
