/**
 * Ends a run's output with one plain line, `N passed, N failed` with `, N skipped` where there are any, so that whoever
 * runs the tests need not know vitest's colours and columns. Above it every skipped test stands by name.
 *
 * Where CI is set a skipped test fails the run: there everything a test may miss on a machine has been installed.
 */
import { writeSync } from "node:fs";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

const STANDARD_OUTPUT = 1;

interface Tally {
  readonly passed: number;
  /** Failed tests, files that could not be loaded, and errors that no test caught. */
  readonly failed: number;
  /** `file > describe > test` of each. */
  readonly skipped: readonly string[];
}

const tally = (modules: readonly TestModule[], uncaught: number): Tally => {
  const skipped: string[] = [];
  let passed = 0;
  let failed = uncaught;
  for (const module of modules) {
    let failedHere = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === "passed") passed += 1;
      else if (state === "failed") failedHere += 1;
      else skipped.push(`${module.relativeModuleId} > ${test.fullName}`);
    }
    // A file that fails to load, or whose hooks fail, has no failed test to count.
    failed += failedHere === 0 && !module.ok() ? 1 : failedHere;
  }
  return { passed, failed, skipped };
};

export interface Closing {
  /** The skipped tests by name, then the one line. */
  readonly lines: readonly string[];
  /** Tests were skipped where none may be. */
  readonly isRefused: boolean;
}

/** @param ci the variable CI: anything but the empty text or `false` makes a skipped test an error. */
export const closing = (
  modules: readonly TestModule[],
  uncaught: number,
  ci: string | undefined,
): Closing => {
  const { passed, failed, skipped } = tally(modules, uncaught);
  const isRefused = skipped.length > 0 && ci !== undefined && ci !== "" && ci !== "false";
  const tail = skipped.length > 0 ? `, ${skipped.length} skipped` : "";
  return {
    lines: [
      ...skipped.map((name) => `skipped: ${name}`),
      ...(isRefused ? ["CI is set: a skipped test is an error."] : []),
      `${passed} passed, ${failed} failed${tail}`,
    ],
    isRefused,
  };
};

export class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], uncaught: readonly SerializedError[]): void {
    const { lines, isRefused } = closing(modules, uncaught.length, process.env["CI"]);
    if (isRefused) process.exitCode = 1;
    // Global tear-downs and vitest's own warnings come after the reporters: the line waits for the very end.
    process.once("exit", () => writeSync(STANDARD_OUTPUT, `${lines.join("\n")}\n`));
  }
}
