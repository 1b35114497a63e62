/**
 * The number of tries of each fault, in one place. A run may set each count: REAL_FAULTS_KILLS=300 npm run test:deep.
 * A seed draws every choice that the harness makes (which fault, when, what users do); the machine's timing is not
 * part of it.
 */
const given = (name: string, fallback: number): number => {
  const text = process.env[`REAL_FAULTS_${name}`];
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`REAL_FAULTS_${name} is ${JSON.stringify(text)}; expected a whole number above 0`);
  return value;
};

/** Enough for the checkers to have something to look at (kills.deep.test.ts). */
export const SHORT_ROUNDS = { kills: 2 } as const;

/** Of real-faults.deep.test.ts. */
export const DEEP_ROUNDS = {
  kills: given("KILLS", 100),
  postgres: given("POSTGRES", 20),
  freezes: given("FREEZES", 10),
  fills: given("FILLS", 5),
} as const;

/** After so many rounds the load pauses and everything is looked at. */
export const ROUNDS_A_CHECK = given("ROUNDS_A_CHECK", 5);

/** A run's own, or the one that REAL_FAULTS_SEED names, to make the same choices again. */
export const seedOfRun = (): number =>
  given("SEED", Math.trunc(performance.timeOrigin + performance.now()) % 1_000_000_000);

/** The aims: they are printed beside the measured values and decide nothing. */
export const AIMS = { readyP95Ms: 1_500, lastOrphanMs: 30_000 } as const;

/** The value below which `share` of them lie, by nearest rank; NaN of none. */
export const percentile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
};
