/**
 * How long tests wait: the one place. Real parts (Postgres, sandboxes, the agent runtime, browsers) start and answer many times
 * slower on a machine that others use. These limits end a test that hangs. They say nothing about speed, so that they bear a machine
 * that is five times slower than the slowest one on which they were measured.
 */

/** For one test, or one hook. */
export const TEST_MS = 300_000;
/** For one thing that a test waits for. */
export const WAIT_MS = 120_000;
