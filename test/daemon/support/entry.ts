/** The daemon in a layout of the test's own, given as JSON in the first argument. program.ts bundles this file. */
import { start } from "../../../daemon/start.ts";

export const run = (): void => start(JSON.parse(process.argv[2] ?? "{}"));
