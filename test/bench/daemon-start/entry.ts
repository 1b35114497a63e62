/** Runs the daemon bundled, in a layout of the bench's own, given as JSON in the environment. */
import { start } from "../../../daemon/start.ts";

export { warmUp } from "../../../daemon/bundle/warm-up.ts";

export const run = (): void => start(JSON.parse(process.env["DAEMON_LAYOUT"] ?? "{}"));
