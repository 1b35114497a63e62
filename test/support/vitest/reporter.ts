/**
 * Ends a run's output with one plain line, `N passed, N failed`, with `, N skipped` if tests were skipped, so that
 * readers need not know vitest's colours and columns. The lines above it name every skipped test or suite.
 *
 * If CI is set, a skipped test fails the run, because CI has everything installed that a test may lack elsewhere.
 *
 * A test that failed and passed when it was run again (test/real.config.ts) is named too. Each of them is a fault of the
 * product or of the test, and more than `SECOND_TRIES` of them fail the run.
 *
 * A whole run also fails if it starts more services, databases, sandboxes or browsers than are committed (starts.ts).
 */
import { writeSync } from "node:fs";
import type { Reporter, SerializedError, TestCase, TestModule, TestSuite, Vitest } from "vitest/node";
import { allowedStarts, countedStarts, excessStarts } from "./starts.ts";

const STANDARD_OUTPUT = 1;
/** How many tests of a run may pass only when they are run again. */
const SECOND_TRIES = 3;

interface Tally {
  readonly passed: number;
  /** Failed tests, files that could not be loaded, and errors outside of tests. */
  readonly failed: number;
  /** `file > describe > test` of each. A suite whose tests were all skipped represents them. */
  readonly skipped: ReadonlyMap<string, number>;
  /** Tests that passed only when they were run again. */
  readonly again: readonly string[];
}

const isSkipped = (test: TestCase): boolean => test.result().state === "skipped";

/** The outermost suite that was skipped as a whole, otherwise the test. */
const skippedWhole = (test: TestCase): TestCase | TestSuite => {
  let whole: TestCase | TestSuite = test;
  for (let above = test.parent; above.type === "suite"; above = above.parent) {
    if ([...above.children.allTests()].every(isSkipped)) whole = above;
  }
  return whole;
};

const tally = (modules: readonly TestModule[], uncaught: number): Tally => {
  const skipped = new Map<string, number>();
  const again: string[] = [];
  let passed = 0;
  let failed = uncaught;
  for (const module of modules) {
    let failedHere = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (test.diagnostic()?.flaky === true) again.push(`${module.relativeModuleId} > ${test.fullName}`);
      if (state === "passed") passed += 1;
      else if (state === "failed") failedHere += 1;
      else {
        const name = `${module.relativeModuleId} > ${skippedWhole(test).fullName}`;
        skipped.set(name, (skipped.get(name) ?? 0) + 1);
      }
    }
    // A file that fails to load, or whose hooks fail, has no failed test to count.
    failed += failedHere === 0 && !module.ok() ? 1 : failedHere;
  }
  return { passed, failed, skipped, again };
};

export interface Closing {
  /** The names of tests that were skipped or run again, then the one line. */
  readonly lines: readonly string[];
  /** Tests were skipped although that is forbidden, or too many passed only at their second try. */
  readonly isRefused: boolean;
}

const NOTHING_TO_SAY: Closing = { lines: [], isRefused: false };

/** @param ci the variable CI: any value except the empty text and `false` makes a skipped test an error. */
export const closing = (
  modules: readonly TestModule[],
  uncaught: number,
  ci: string | undefined,
): Closing => {
  const { passed, failed, skipped, again } = tally(modules, uncaught);
  const count = [...skipped.values()].reduce((sum, tests) => sum + tests, 0);
  const isSkipRefused = count > 0 && ci !== undefined && ci !== "" && ci !== "false";
  const tail = count > 0 ? `, ${count} skipped` : "";
  return {
    lines: [
      ...[...skipped].map(([name, tests]) => `skipped: ${name}${tests > 1 ? ` (${tests} tests)` : ""}`),
      ...(isSkipRefused ? ["CI is set: a skipped test is an error."] : []),
      ...again.map((name) => `passed only when it was run again: ${name}`),
      ...(again.length > SECOND_TRIES ? [`At most ${SECOND_TRIES} tests may need a second try.`] : []),
      `${passed} passed, ${failed} failed${tail}`,
    ],
    isRefused: isSkipRefused || again.length > SECOND_TRIES,
  };
};

/** Whether all tests of the configuration ran: no filter of files or names left one out. */
const isWhole = async (vitest: Vitest, modules: readonly TestModule[]): Promise<boolean> =>
  vitest.config.testNamePattern === undefined &&
  (await vitest.globTestSpecifications()).length === modules.length;

export class ClosingLine implements Reporter {
  readonly #command: string;
  #vitest: Vitest | undefined;

  /** @param command the command whose starts are limited, as `starts.json` names it. */
  constructor(command = "") {
    this.#command = command;
  }

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  /** One line with the run's starts, and one for each kind of which there were too many. */
  async #starts(modules: readonly TestModule[]): Promise<Closing> {
    const [starts, allowed] = [countedStarts(), allowedStarts(this.#command)];
    if (starts === null) return NOTHING_TO_SAY;
    if (this.#vitest === undefined || !(await isWhole(this.#vitest, modules))) return NOTHING_TO_SAY;
    const excess = allowed === null ? [] : excessStarts(starts, allowed);
    const counts = Object.entries(starts).map(([kind, count]) => `${count} ${kind}`);
    return { lines: [`started: ${counts.join(", ")}`, ...excess], isRefused: excess.length > 0 };
  }

  async onTestRunEnd(modules: readonly TestModule[], uncaught: readonly SerializedError[]): Promise<void> {
    const { lines, isRefused } = closing(modules, uncaught.length, process.env["CI"]);
    const starts = await this.#starts(modules);
    if (isRefused || starts.isRefused) process.exitCode = 1;
    // Global tear-downs and vitest's own warnings come after the reporters, so the line waits for the very end.
    process.once("exit", () => writeSync(STANDARD_OUTPUT, `${[...starts.lines, ...lines].join("\n")}\n`));
  }
}
