/** The configuration of simulated services. */
import { readConfig } from "../../src/settings/config.ts";
import { WARM_MB } from "../../src/services/sessions/warm-pool.ts";

export const BOOT_TIMEOUT_MS = 4_000;
const IDLE_TIMEOUT_MS = 45_000;
const MAX_TURN_MS = 200_000;
/** Long, so that what no signal told is late, and seen to be. */
const RECOVERY_MS = 30_000;

/** Where people talk, sessions that wait for them stay long enough to be looked at, and requests wait less long. */
const IDLE_WITH_PEOPLE_MS = 120_000;
export const REQUEST_TTL_MS = 20_000;

/** Seeds from this one on have people who talk to the agents. */
export const PEOPLE_FROM = 1_000_000;
/** Seeds from this one on have people, and agents whose calls people decide on. */
export const APPROVALS_FROM = 2_000_000;
/** Seeds from this one on have sandboxes that wait for a session, and no people. No test draws them among others. */
export const WARM_FROM = 3_000_000_000;
/** Seeds from this one on have agents whose work is saved, and no people. No test draws them among others. */
export const WORK_FROM = 6_000_000_000;
export const hasWork = (seed: number): boolean => seed >= WORK_FROM;
export const hasWarm = (seed: number): boolean => seed >= WARM_FROM && !hasWork(seed);
export const hasApprovals = (seed: number): boolean => seed >= APPROVALS_FROM && seed < WARM_FROM;
export const hasPeople = (seed: number): boolean => seed >= PEOPLE_FROM && seed < WARM_FROM;
/** So many sandboxes may wait on a node. */
export const PLACES = 2;

const SETTINGS = {
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
  // No person's request waits here.
  PLATFORM_MAKE_ROOM_AFTER_MINUTES: "0",
  PLATFORM_WARM_MEMORY_MB: "0",
};

const CONFIG = readConfig(SETTINGS, "/");
const CONFIG_WITH_PEOPLE = readConfig(
  {
    ...SETTINGS,
    PLATFORM_IDLE_TIMEOUT_MS: String(IDLE_WITH_PEOPLE_MS),
    PLATFORM_REQUEST_TTL_MS: String(REQUEST_TTL_MS),
  },
  "/",
);

const CONFIG_WITH_WARM = readConfig({ ...SETTINGS, PLATFORM_WARM_MEMORY_MB: String(PLACES * WARM_MB) }, "/");

/** The configuration of the services of this seed's world. */
export const configOf = (seed: number) => {
  if (hasWarm(seed)) return CONFIG_WITH_WARM;
  return hasPeople(seed) ? CONFIG_WITH_PEOPLE : CONFIG;
};
