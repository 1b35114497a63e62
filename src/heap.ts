/** How V8 decides when to collect, for a process that passes many bytes on. */
import { setFlagsFromString } from "node:v8";

/** The engine that has the setting below and does not go by it by itself. */
const V8_MAJOR = "13";

/** What may be garbage of a heap before it is collected, in percent of what lives. */
const GARBAGE_PERCENT = 200;

/**
 * Has the engine count buffers with its heap when it decides whether a collection is due. Otherwise their bytes start one by
 * themselves, at some 15 MB, and each looks at everything that lives: two thirds of the work of a large clone. To be called
 * once, at the start. `npm run bench:git` shows what it saves, test/git/memory.deep.test.ts what it may cost.
 */
export const countBuffersWithHeap = (): void => {
  if (!process.versions.v8.startsWith(`${V8_MAJOR}.`)) return;
  setFlagsFromString("--external-memory-accounted-in-global-limit");
  setFlagsFromString(`--heap-growing-percent=${GARBAGE_PERCENT}`);
};
