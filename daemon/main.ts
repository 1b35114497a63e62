/**
 * Entry of `platform-agent` (spec.md, sandbox layout). Runs by itself as `node platform-agent` (see bundle.ts), or faster
 * by the launcher, from a code cache.
 */
import { SANDBOX_LAYOUT } from "./settings.ts";
import { start } from "./start.ts";

export { warmUp } from "./warm-up.ts";

export const run = (): void => start(SANDBOX_LAYOUT);
