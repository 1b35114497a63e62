/** The configuration of every simulated service. */
import { readConfig } from "../../src/config.ts";

export const BOOT_TIMEOUT_MS = 4_000;
const IDLE_TIMEOUT_MS = 45_000;
const MAX_TURN_MS = 200_000;
/** Long, so that what no signal told is late, and seen to be. */
const RECOVERY_MS = 30_000;

export const CONFIG = readConfig(
  {
    PLATFORM_BOOT_TIMEOUT_MS: String(BOOT_TIMEOUT_MS),
    PLATFORM_IDLE_TIMEOUT_MS: String(IDLE_TIMEOUT_MS),
    PLATFORM_MAX_TURN_MS: String(MAX_TURN_MS),
    PLATFORM_RECOVERY_INTERVAL_MS: String(RECOVERY_MS),
    // So few that sandboxes wait for each other; the same on every machine.
    PLATFORM_BOOTS_AT_ONCE: "2",
    // An instant whose message was overtaken by another is found by the next poll: within this, for the checkers.
    PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS: "15000",
    PLATFORM_ACTOR_IDLE_MS: "20000",
    PLATFORM_QUEUE_TTL_MS: "600000",
    PLATFORM_QUEUE_MAX: "6",
  },
  "/",
);
