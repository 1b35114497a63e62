/**
 * The entry point of `platform-agent` (spec.md, sandbox layout). It runs directly as `node platform-agent` (see
 * bundle/bundle.ts), or faster through the launcher, with a code cache.
 */
import { SANDBOX_LAYOUT } from "./settings.ts";
import { start } from "./start.ts";

export { warmUp } from "./bundle/warm-up.ts";

export const run = (): void => start(SANDBOX_LAYOUT);
