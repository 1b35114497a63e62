/**
 * All time limits of tests. Real parts (Postgres, sandboxes, the agent runtime, browsers) start and answer many times
 * slower on a busy machine. These limits only end a test that hangs and say nothing about speed. They fit a machine
 * that is five times slower than the slowest one on which they were measured.
 */

/** For one test, or one hook. */
export const TEST_MS = 300_000;
/** For one deep test: a kill at every point, a long simulation. */
export const DEEP_TEST_MS = 1_800_000;
/** For one condition that a test waits for. */
export const WAIT_MS = 120_000;
