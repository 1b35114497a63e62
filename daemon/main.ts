/** Entry of `platform-agent` (spec.md, Sandbox layout). */
import { SANDBOX_LAYOUT } from "./settings.ts";
import { start } from "./start.ts";

start(SANDBOX_LAYOUT);
