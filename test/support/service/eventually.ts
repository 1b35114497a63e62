/** Waits until a check holds that has no signal, so it asks again and again. */
import { setTimeout as sleep } from "node:timers/promises";
import { WAIT_MS } from "../patience.ts";

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;
/** Of the time waited so far. A long wait is asked for rarely: each question costs the service that is waited for CPU time. */
const PAUSE_SHARE = 0.15;

/** @returns the check's result, once it does not throw. After WAIT_MS it fails as the last check did. */
export const eventually = async <A>(check: () => A | Promise<A>): Promise<A> => {
  const begun = performance.now();
  for (;;) {
    try {
      return await check();
    } catch (error) {
      const waited = performance.now() - begun;
      if (waited >= WAIT_MS) throw error;
      await sleep(Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, waited * PAUSE_SHARE)));
    }
  }
};
