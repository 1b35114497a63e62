/** What happens to a simulated service from outside, drawn from the seed before it begins: a failing run is made shorter by leaving steps out. */
import { hasApprovals, hasPeople, hasWarm } from "../config.ts";
import type { Random } from "../random.ts";

export const KINDS = [
  "create",
  "stop",
  "restart",
  "remove",
  "rename",
  "fire",
  "replay",
  "cancel",
  "deliver",
  "resend",
  "pause",
  "archive",
  "cap",
  "manifest",
  "crash",
  "crash_soon",
  "freeze",
  "restore",
  "clock",
  "outage",
  "flaky",
  "exit",
  "work",
  "secret",
  "orphan",
  "lie",
  "propose",
  "merge",
  "close",
] as const;
/** The steps in conversations, for worlds that have people. */
export const TALKING = ["say", "unsay", "interrupt", "resume", "answer"] as const;
/** The steps about approvals, for worlds that have them. */
export const APPROVING = ["call", "decide"] as const;
/** The step for worlds in which sandboxes wait. */
export const WISHING = ["wish"] as const;
export type StepKind = (typeof KINDS | typeof TALKING | typeof APPROVING | typeof WISHING)[number];

export interface Step {
  readonly do: StepKind;
  /** The index of its target among the targets at that time. */
  readonly which: number;
  readonly how: number;
  /** From here to the next step, ms. */
  readonly wait: number;
}

/** Steps of a run in `npm test`. */
export const SHORT_STEPS = 25;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** How often each kind is drawn, relative to the others. */
const WEIGHTS: Readonly<Record<(typeof KINDS)[number], number>> = {
  create: 14,
  stop: 9,
  restart: 8,
  remove: 4,
  rename: 1,
  fire: 4,
  replay: 3,
  cancel: 2,
  deliver: 16,
  resend: 10,
  pause: 2,
  archive: 2,
  cap: 3,
  manifest: 4,
  crash: 3,
  crash_soon: 6,
  freeze: 2,
  restore: 1,
  clock: 1,
  outage: 2,
  flaky: 4,
  exit: 4,
  work: 3,
  secret: 1,
  orphan: 1,
  lie: 1,
  propose: 7,
  merge: 5,
  close: 2,
};

/** Where people talk: mostly that, and what ends sessions, sandboxes and lives of the service. */
const WEIGHTS_WITH_PEOPLE: Readonly<Partial<Record<StepKind, number>>> = {
  create: 2,
  stop: 4,
  restart: 4,
  remove: 1,
  fire: 3,
  deliver: 3,
  crash: 3,
  crash_soon: 9,
  freeze: 1,
  clock: 1,
  outage: 1,
  flaky: 3,
  exit: 5,
  say: 36,
  unsay: 6,
  interrupt: 12,
  resume: 5,
  answer: 16,
};

/** Where people decide on calls: mostly that, and what goes wrong meanwhile. */
const WEIGHTS_WITH_APPROVALS: Readonly<Partial<Record<StepKind, number>>> = {
  create: 3,
  stop: 5,
  restart: 5,
  remove: 2,
  deliver: 3,
  crash: 4,
  crash_soon: 9,
  freeze: 3,
  clock: 3,
  outage: 1,
  flaky: 3,
  exit: 4,
  say: 8,
  interrupt: 3,
  call: 34,
  decide: 32,
};

/** Where sandboxes wait: mostly sessions, and what makes sandboxes outdated or ends them. */
const WEIGHTS_WITH_WARM: Readonly<Partial<Record<StepKind, number>>> = {
  create: 22,
  stop: 14,
  restart: 8,
  remove: 3,
  fire: 6,
  deliver: 10,
  pause: 1,
  archive: 2,
  cap: 2,
  manifest: 6,
  crash: 4,
  crash_soon: 9,
  freeze: 2,
  restore: 1,
  clock: 1,
  outage: 2,
  flaky: 4,
  exit: 8,
  secret: 9,
  lie: 1,
  wish: 14,
};

type Weights = readonly (readonly [StepKind, number])[];
const ORDINARY: Weights = KINDS.map((kind) => [kind, WEIGHTS[kind]]);
const WITH_PEOPLE: Weights = [...KINDS, ...TALKING].map((kind) => [kind, WEIGHTS_WITH_PEOPLE[kind] ?? 0]);

const WITH_APPROVALS: Weights = [...KINDS, ...TALKING, ...APPROVING].map((kind) => [
  kind,
  WEIGHTS_WITH_APPROVALS[kind] ?? 0,
]);

const WITH_WARM: Weights = [...KINDS, ...WISHING].map((kind) => [kind, WEIGHTS_WITH_WARM[kind] ?? 0]);

const drawn = (random: Random, weights: Weights): StepKind => {
  let at = random.fraction() * weights.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [kind, weight] of weights) {
    at -= weight;
    if (at < 0) return kind;
  }
  return "create";
};

/** Mostly at once or soon, so that things meet; now and then much later. */
const waitAfter = (random: Random): number => {
  const draw = random.fraction();
  if (draw < 0.3) return 0;
  if (draw < 0.65) return random.between(1, 200);
  if (draw < 0.9) return random.between(200, 3 * SECOND);
  return draw < 0.99 ? random.between(5 * SECOND, 30 * SECOND) : random.between(MINUTE, 4 * MINUTE);
};

const weightsOf = (seed: number): Weights => {
  if (hasWarm(seed)) return WITH_WARM;
  if (hasApprovals(seed)) return WITH_APPROVALS;
  return hasPeople(seed) ? WITH_PEOPLE : ORDINARY;
};

/** @param seed says what the world has */
export const stepsOf = (
  random: Random,
  { seed, steps }: { readonly seed: number; readonly steps: number },
): readonly Step[] =>
  Array.from({ length: steps }, () => ({
    do: drawn(random, weightsOf(seed)),
    which: random.next() % 1024,
    how: random.next() % 1024,
    wait: waitAfter(random),
  }));

/** For how long a service that was killed stays down, ms: mostly not at all, now and then for days, up to nine. */
export const downtimeOf = (how: number): number => {
  if (how < 700) return how;
  if (how < 900) return (how - 700) * SECOND;
  if (how < 990) return (how - 900) * MINUTE;
  return (how - 990) * 7 * HOUR;
};

/** For how long a node stands still, ms: up to two minutes (threats.md "Faults"). */
export const frozenFor = (how: number): number => (how < 700 ? 50 * how : (how - 700) * 350) + 50;

/** By how much a clock is set, ms: some seconds to a day, either way. */
export const clockStepOf = (how: number): number => {
  const sizes = [5 * SECOND, 90 * SECOND, HOUR, 24 * HOUR] as const;
  return (how % 2 === 0 ? 1 : -1) * (sizes[Math.floor(how / 2) % sizes.length] ?? HOUR);
};
