/** Runs the daemon in a layout of the test's own, given as JSON in the first argument. */
import { start } from "../../../daemon/start.ts";

start(JSON.parse(process.argv[2] ?? "{}"));
