import { OPENCODE } from "../../../src/domain/runtimes/opencode.ts";
import { offeredRuntimes } from "../../../src/domain/runtimes/runtimes.ts";

/** The runtimes of an installation with default settings. */
export const OFFERED = offeredRuntimes({ adapter: "opencode", command: OPENCODE.command ?? [] }, []);
