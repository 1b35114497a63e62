/** One simulated run from one seed: bad days, then peace, then the books are compared. */
import { createHash } from "node:crypto";
import { Actions } from "./requests/actions.ts";
import { checkAtRest } from "./oracles/at-rest.ts";
import { ApprovalsWatch } from "./oracles/approvals-watch.ts";
import { hasApprovals, hasPeople, hasWarm } from "./config.ts";
import { Ledger } from "./ledger.ts";
import { marksOf, marksOfApprovals, marksOfPeople, marksOfWarm, slownessOf } from "./marks.ts";
import { Merges } from "./world/merges.ts";
import { peopleFaults } from "./oracles/people-at-rest.ts";
import { PeopleWatch } from "./oracles/people-watch.ts";
import type { Bridge } from "./postgres/bridge.ts";
import { watchSaves } from "./oracles/saves-watch.ts";
import { SnapshotWatch } from "./postgres/watch.ts";
import { quietTime } from "./oracles/quiet-time.ts";
import { Random } from "./random.ts";
import { stepsOf, type Step } from "./requests/steps.ts";
import { CommitWatch } from "./oracles/watch.ts";
import { WarmWatch } from "./oracles/warm-watch.ts";
import { World } from "./world.ts";

export interface RunOptions {
  readonly seed: number;
  readonly steps: number;
  /** Instead of the seed's own: some of them, when a failing run is made shorter. */
  readonly only?: readonly Step[];
}

export interface RunResult {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly trace: readonly string[];
  readonly hits: ReadonlyMap<string, number>;
  /** Calls of ports that took effect. */
  readonly calls: ReadonlyMap<string, number>;
  /** Virtual time, ms. */
  readonly elapsed: number;
  readonly digest: string;
}

export const planOf = ({ seed, steps }: Pick<RunOptions, "seed" | "steps">): readonly Step[] =>
  stepsOf(new Random(seed, "steps"), { seed, steps });

/** More than these are not looked for: the run has failed. */
const VIOLATIONS_MAX = 5;
/** From a start to its being up. */
const START_MS = 2_000;

export const simulate = (options: RunOptions, bridge: Bridge | null = null): RunResult => {
  const world = new World(options.seed, bridge);
  const ledger = new Ledger();
  const watch = bridge === null ? new CommitWatch(world) : new SnapshotWatch(world);
  const actions = new Actions(world, ledger);
  const { time, boundary } = world;
  const { violations } = watch;
  const merges = new Merges(world, ledger, violations);
  const people = hasPeople(options.seed) ? new PeopleWatch(world, { ledger, violations }) : null;
  const approvals = hasApprovals(options.seed) ? new ApprovalsWatch(world, { ledger, violations }) : null;
  const warm = hasWarm(options.seed) ? new WarmWatch(world, { violations }) : null;
  watchSaves(world, violations);
  const pass = (ms: number) => world.pass(ms);
  try {
    pass(START_MS);
    actions.begin();
    pass(START_MS);
    world.refresh();
    watch.look();
    boundary.slowness = slownessOf(new Random(options.seed, "slow calls"));
    boundary.mark(marksOf(new Random(options.seed, "marks")));
    if (people !== null) boundary.mark(marksOfPeople(new Random(options.seed, "marks of people")));
    if (approvals !== null) boundary.mark(marksOfApprovals(new Random(options.seed, "marks of approvals")));
    if (warm !== null) boundary.mark(marksOfWarm(new Random(options.seed, "marks of waiting sandboxes")));
    for (const step of options.only ?? planOf(options)) {
      actions.perform(step);
      pass(step.wait);
      world.refresh();
      watch.look();
      if (violations.length > 0) break;
    }
    if (violations.length === 0 && bridge === null) quietTime(world, actions, pass);
    if (violations.length === 0) violations.push(...checkAtRest(world, ledger, pass));
    if (violations.length === 0 && people !== null && bridge === null)
      violations.push(...peopleFaults(world, { ledger, watch: people, pass }));
    if (violations.length === 0) violations.push(...merges.atRest());
    if (violations.length === 0 && approvals !== null) violations.push(...approvals.atRest(pass));
    if (violations.length === 0 && warm !== null) violations.push(...warm.atRest(pass));
  } catch (error) {
    violations.push(`crashed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
  violations.push(...world.defects);
  const trace = boundary.trace;
  return {
    seed: options.seed,
    violations: violations.slice(0, VIOLATIONS_MAX),
    trace,
    hits: boundary.hits,
    calls: boundary.calls,
    elapsed: time.elapsed,
    digest: createHash("sha256").update(trace.join("\n")).digest("hex"),
  };
};
