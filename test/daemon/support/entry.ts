/** The daemon in a layout of the test's own, given as JSON in the last argument. program.ts bundles this file. */
import { start } from "../../../daemon/start.ts";

export { warmUp } from "../../../daemon/bundle/warm-up.ts";

export const run = (): void => start(JSON.parse(process.argv.at(-1) ?? "{}"));
