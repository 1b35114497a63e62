import { OPENCODE } from "../../../src/domain/runtimes/opencode.ts";
import { offeredRuntimes } from "../../../src/domain/runtimes/runtimes.ts";

/** What an installation offers whose operator has set nothing. */
export const OFFERED = offeredRuntimes({ adapter: "opencode", command: OPENCODE.command ?? [] }, []);
