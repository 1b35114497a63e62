/** The rules for the platform's own tools. */
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { readExecutor } from "../../../src/domain/manifest/manifest-connectors.ts";
import { readOwnRules } from "../../../src/domain/connector/own-tools.ts";

test.each([
  ["no rules", undefined, []],
  ["one tool", [{ match: "start_session", policy: "deny" }], ["start_session"]],
  ["a pattern", [{ match: "*", policy: "deny" }], ["start_session", "open_change_request"]],
  [
    "an exception first",
    [
      { match: "open_*", policy: "allow" },
      { match: "*", policy: "deny" },
    ],
    ["start_session"],
  ],
])("denies the platform's own tools by %s", (_, rules, denied) => {
  const { executor, errors } = readExecutor({ executor: { tools: rules }, connectors: [] }, "");
  expect([executor.denied, errors]).toEqual([denied, []]);
});

test.each([
  ["a policy that asks", [{ match: "*", policy: "ask" }], `must be "allow" or "deny"`],
  [
    "a tool that has no rules",
    [{ match: "list_sessions", policy: "deny" }],
    "match must fit one of the tools",
  ],
  ["another field", [{ match: "*", policy: "deny", why: "x" }], "with match and policy"],
  ["rules that are no list", { match: "*" }, "Write at most 100 rules"],
])("denies both of the platform's own tools while %s is in its rules, and says so", (_, tools, message) => {
  const { executor, errors } = readExecutor({ executor: { tools }, connectors: [] }, "[executor]");
  expect(executor.denied).toEqual(["start_session", "open_change_request"]);
  expect(errors).toEqual([
    { slug: null, index: null, path: "executor.tools", line: 1, message: expect.stringContaining(message) },
  ]);
  expect(executor.defaultPolicy).toBe("ask");
});

test("reads at most as many rules as a connector has", () => {
  const rule = { match: "*", policy: "allow" };
  const read = (count: number) => readOwnRules(Array.from({ length: count }, () => rule));
  expect([Result.isSuccess(read(100)), Result.isSuccess(read(101))]).toEqual([true, false]);
});
