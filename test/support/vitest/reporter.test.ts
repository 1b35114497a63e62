import { expect, test } from "vitest";
import type { TestModule } from "vitest/node";
import { closing } from "./reporter.ts";

/** "again" failed first and then passed. */
type State = "passed" | "failed" | "skipped" | "again";

interface Suite {
  readonly type: "suite";
  readonly fullName: string;
  readonly parent: object;
  readonly children: { readonly allTests: () => readonly object[] };
}

/** The parts of a finished file that the reporter reads: one suite, and vitest's own result for the whole. */
const ran = (relativeModuleId: string, states: readonly State[], ok = !states.includes("failed")) => {
  const suite: Suite = {
    type: "suite",
    fullName: "suite",
    parent: { type: "module" },
    children: { allTests: () => tests },
  };
  const tests = states.map((state, index) => ({
    type: "test",
    fullName: `suite > case ${index}`,
    parent: suite,
    result: () => ({ state: state === "again" ? "passed" : state }),
    diagnostic: () => ({ flaky: state === "again" }),
  }));
  return {
    relativeModuleId,
    ok: () => ok,
    children: { allTests: () => tests },
  } as unknown as TestModule;
};

test("ends a run with one plain line", () => {
  const { lines } = closing([ran("a", ["passed", "failed"]), ran("b", ["passed"])], 0, undefined);
  expect(lines).toEqual(["2 passed, 1 failed"]);
});

test("counts a file that could not run, and an error that no test caught, as failures", () => {
  expect(closing([ran("a", [], false), ran("b", ["passed"])], 1, undefined).lines).toEqual([
    "1 passed, 2 failed",
  ]);
});

test("names skipped tests, and refuses them only in continuous integration", () => {
  const modules = [ran("a", ["passed", "skipped"])];
  const here = closing(modules, 0, undefined);
  expect(here).toEqual({
    lines: ["skipped: a > suite > case 1", "1 passed, 0 failed, 1 skipped"],
    isRefused: false,
  });
  expect(closing(modules, 0, "false").isRefused).toBe(false);
  expect(closing(modules, 0, "true").isRefused).toBe(true);
  expect(closing([ran("a", ["passed"])], 0, "true").isRefused).toBe(false);
});

test("names a suite whose tests did not run", () => {
  expect(closing([ran("a", ["skipped", "skipped"])], 0, undefined).lines).toEqual([
    "skipped: a > suite (2 tests)",
    "0 passed, 0 failed, 2 skipped",
  ]);
});

test("names tests that passed only when they were run again, and refuses more than three", () => {
  expect(closing([ran("a", ["passed", "again"])], 0, "true")).toEqual({
    lines: ["passed only when it was run again: a > suite > case 1", "2 passed, 0 failed"],
    isRefused: false,
  });
  const { lines, isRefused } = closing([ran("a", ["again", "again", "again", "again"])], 0, undefined);
  expect(lines).toContain("At most 3 tests may need a second try.");
  expect(isRefused).toBe(true);
});
