/**
 * What `npm test` leaves to `npm run test:deep`. A file that asks here runs in both: a sample of its cases in `npm test`, and all of
 * them in the deep tests (`WHOLE_IN_DEEP` in vitest.config.ts lists these files).
 */
import { inject, it } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** Which tests run. Absent in `npm test`. */
    ring?: "deep";
  }
}

/** For a case whose size differs. */
export const isDeep = inject("ring") === "deep";

/** @returns all cases in the deep tests, in `npm test` only those of the sample. Each of the sample must be among all. */
export const sampled = <A>(all: readonly A[], sample: readonly NoInfer<A>[]): readonly A[] => {
  const strangers = sample.filter((one) => !all.includes(one));
  if (strangers.length > 0) throw new Error(`not among all cases: ${strangers.join(", ")}`);
  return isDeep ? all : sample;
};

/** @returns how often to try what chance decides. */
export const rounds = (inNpmTest: number, inDeep: number): number => (isDeep ? inDeep : inNpmTest);

/** A test that only the deep tests run. @param timeoutMs its limit, if not that of all tests. */
export const deepTest = (name: string, test: () => Promise<void> | void, timeoutMs?: number): void => {
  if (isDeep) it(name, test, timeoutMs);
};

/** Registers tests that only the deep tests run. Elsewhere they are not skipped: they are absent. */
export const onlyDeep = (register: () => void): void => {
  if (isDeep) register();
};
