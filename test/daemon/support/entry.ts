/** Runs the daemon in a layout of the test's own, given as JSON in the first argument. */
import { keepCompiled } from "../../../src/compile-cache.ts";

// Hundreds of tests start it. The daemon of a sandbox starts from a code cache, too.
keepCompiled();
const { start } = await import("../../../daemon/start.ts");

start(JSON.parse(process.argv[2] ?? "{}"));
